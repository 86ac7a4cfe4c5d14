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

constexpr std::size_t kAlone = std::size_t(-1);

// `weight` is how many units of distance a doubling is. Kernels see some sizes only as products or
// ratios (blocks are sequences times heads): `with` names, by its place in the list, a coordinate whose
// logarithm is added `share` times. Weights were chosen by held-out error on a sweep of an H200.
struct Coordinate {
  std::string_view name;
  Scale scale = Scale::size;
  double weight = 1;
  std::size_t with = kAlone;
  double share = 0;
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
    {{"m", Scale::size, 3}, {"n", Scale::size, 1.5}, {"k"}, {"groups"}, {"ragged", Scale::amount}}};
inline constexpr std::array<Coordinate, 7> kPrefillCoordinates{{{"query_len", Scale::length},
                                                                {"prefix_len", Scale::length},
                                                                {"batch", Scale::size, 2, 3, 1},
                                                                {"q_heads", Scale::size, 1, 4, -1},
                                                                {"kv_heads", Scale::size, 0.3},
                                                                {"head_dim", Scale::size, 2},
                                                                {"window", Scale::amount}}};
inline constexpr std::array<Coordinate, 6> kDecodeCoordinates{{{"context_len", Scale::length},
                                                               {"batch", Scale::size, 3, 3, 1},
                                                               {"q_heads", Scale::size, 1, 3, -1},
                                                               {"kv_heads", Scale::size, 0.3},
                                                               {"head_dim", Scale::size, 2},
                                                               {"window", Scale::amount}}};
inline constexpr std::array<Coordinate, 7> kMoeCoordinates{{{"tokens"},
                                                            {"hidden"},
                                                            {"inter"},
                                                            {"topk"},
                                                            {"experts"},
                                                            {"local_experts"},
                                                            {"skew", Scale::amount}}};
inline constexpr std::array<Coordinate, 2> kAbsorbedCoordinates{{{"tokens"}, {"q_heads"}}};
inline constexpr std::array<Coordinate, 2> kPassCoordinates{
    {{"rows"}, {"row_bytes", Scale::size, 2}}};
inline constexpr std::array<Coordinate, 2> kCollectiveCoordinates{{{"bytes"}, {"ranks"}}};
inline constexpr std::array<Coordinate, 4> kExchangeCoordinates{
    {{"tokens"}, {"hidden"}, {"topk"}, {"experts"}}};
inline constexpr std::array<Coordinate, 1> kCopyCoordinates{{{"bytes"}}};

}  // namespace engine
