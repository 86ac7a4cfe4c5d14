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

// What boosted trees may ask about a shape, beside its coordinates (engine/calibration/features.h).
enum class Features : std::uint8_t { none, product, prefill, decode, experts };

// The coordinates of a family. The first is the one a sweep runs along, for given others: tokens,
// context or message.
struct CoordinateList {
  std::span<const Coordinate> list;
  Features features = Features::none;

  constexpr CoordinateList() = default;
  template <std::size_t N>
  constexpr CoordinateList(const std::array<Coordinate, N>& all, Features asked = Features::none)
      : list(all), features(asked) {}

  constexpr std::size_t size() const { return list.size(); }
  constexpr const Coordinate& operator[](std::size_t i) const { return list[i]; }
};

namespace coordinate_lists {
inline constexpr std::array<Coordinate, 5> kGemm{
    {{"m", Scale::size, 3}, {"n", Scale::size, 1.5}, {"k"}, {"groups"}, {"ragged", Scale::amount}}};
inline constexpr std::array<Coordinate, 7> kPrefill{{{"query_len", Scale::length},
                                                     {"prefix_len", Scale::length},
                                                     {"batch", Scale::size, 2, 3, 1},
                                                     {"q_heads", Scale::size, 1, 4, -1},
                                                     {"kv_heads", Scale::size, 0.3},
                                                     {"head_dim", Scale::size, 2},
                                                     {"window", Scale::amount}}};
inline constexpr std::array<Coordinate, 6> kDecode{{{"context_len", Scale::length},
                                                    {"batch", Scale::size, 3, 3, 1},
                                                    {"q_heads", Scale::size, 1, 3, -1},
                                                    {"kv_heads", Scale::size, 0.3},
                                                    {"head_dim", Scale::size, 2},
                                                    {"window", Scale::amount}}};
inline constexpr std::array<Coordinate, 7> kMoe{{{"tokens"},
                                                 {"hidden"},
                                                 {"inter"},
                                                 {"topk"},
                                                 {"experts"},
                                                 {"local_experts"},
                                                 {"skew", Scale::amount}}};
inline constexpr std::array<Coordinate, 2> kAbsorbed{{{"tokens"}, {"q_heads"}}};
// `cold` is the share of the bytes that is not in the cache: sweeps measure all or nothing of it.
inline constexpr std::array<Coordinate, 3> kPass{
    {{"rows"}, {"row_bytes", Scale::size, 2}, {"cold", Scale::amount, 8}}};
inline constexpr std::array<Coordinate, 2> kCollective{{{"bytes"}, {"ranks"}}};
inline constexpr std::array<Coordinate, 3> kBetween{{{"bytes"}, {"nodes"}, {"per_node"}}};
inline constexpr std::array<Coordinate, 4> kExchange{
    {{"tokens"}, {"hidden"}, {"topk"}, {"experts"}}};
inline constexpr std::array<Coordinate, 1> kCopy{{{"bytes"}}};

}  // namespace coordinate_lists

inline constexpr CoordinateList kGemmCoordinates{coordinate_lists::kGemm, Features::product};
inline constexpr CoordinateList kPrefillCoordinates{coordinate_lists::kPrefill, Features::prefill};
inline constexpr CoordinateList kDecodeCoordinates{coordinate_lists::kDecode, Features::decode};
inline constexpr CoordinateList kMoeCoordinates{coordinate_lists::kMoe, Features::experts};
inline constexpr CoordinateList kAbsorbedCoordinates{coordinate_lists::kAbsorbed};
inline constexpr CoordinateList kPassCoordinates{coordinate_lists::kPass};
inline constexpr CoordinateList kCollectiveCoordinates{coordinate_lists::kCollective};
inline constexpr CoordinateList kBetweenCoordinates{coordinate_lists::kBetween};
inline constexpr CoordinateList kExchangeCoordinates{coordinate_lists::kExchange};
inline constexpr CoordinateList kCopyCoordinates{coordinate_lists::kCopy};

}  // namespace engine
