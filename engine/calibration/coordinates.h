// The shape of a call as a point in space: what says whether a fit has seen its like, and how near two
// measured calls are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace engine {

constexpr std::size_t kMostCoordinates = 8;

enum class Scale : std::uint8_t {
  size,    // a doubling is one unit; never zero
  amount,  // the same, but may be zero
  length,  // of a sequence: linear between measured ones, because attention is
};

struct Coordinate {
  std::string_view name;
  Scale scale = Scale::size;
};

// Values in the units of the kernel tables, in the order of the family's list below.
struct Coordinates {
  std::array<double, kMostCoordinates> value{};
  std::size_t count = 0;
};

template <class... Values>
constexpr Coordinates coordinates(Values... values) {
  return {{double(values)...}, sizeof...(values)};
}

using CoordinateList = std::span<const Coordinate>;

// The first coordinate is the one a sweep runs along, for given others: tokens, context or message.
inline constexpr std::array<Coordinate, 5> kGemmCoordinates{
    {{"m"}, {"n"}, {"k"}, {"groups"}, {"ragged", Scale::amount}}};
inline constexpr std::array<Coordinate, 7> kPrefillCoordinates{{{"query_len", Scale::length},
                                                                {"prefix_len", Scale::length},
                                                                {"batch"},
                                                                {"q_heads"},
                                                                {"kv_heads"},
                                                                {"head_dim"},
                                                                {"window", Scale::amount}}};
inline constexpr std::array<Coordinate, 6> kDecodeCoordinates{{{"context_len", Scale::length},
                                                               {"batch"},
                                                               {"q_heads"},
                                                               {"kv_heads"},
                                                               {"head_dim"},
                                                               {"window", Scale::amount}}};
inline constexpr std::array<Coordinate, 7> kMoeCoordinates{{{"tokens"},
                                                            {"hidden"},
                                                            {"inter"},
                                                            {"topk"},
                                                            {"experts"},
                                                            {"local_experts"},
                                                            {"skew", Scale::amount}}};
inline constexpr std::array<Coordinate, 2> kAbsorbedCoordinates{{{"tokens"}, {"q_heads"}}};
inline constexpr std::array<Coordinate, 2> kPassCoordinates{{{"rows"}, {"row_bytes"}}};
inline constexpr std::array<Coordinate, 2> kCollectiveCoordinates{{{"bytes"}, {"ranks"}}};
inline constexpr std::array<Coordinate, 4> kExchangeCoordinates{
    {{"tokens"}, {"hidden"}, {"topk"}, {"experts"}}};
inline constexpr std::array<Coordinate, 1> kCopyCoordinates{{{"bytes"}}};

}  // namespace engine
