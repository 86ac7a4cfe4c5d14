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

// Values in the units of the kernel tables, in the order of the form's list.
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

// The list of a form's parameters, which name their coordinates and features.
template <class Fit>
constexpr CoordinateList coordinates_for() {
  return CoordinateList(Fit::kCoordinates, Fit::kFeatures);
}

}  // namespace engine
