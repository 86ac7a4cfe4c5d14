#include "engine/calibration/boosted_trees.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace engine {

double BoostedTrees::at(const FeatureValues& values) const {
  // Features are not negative, and the bits of such numbers are ordered as they are: a difference of
  // integers has the answer in its highest bit, which is cheaper than a comparison of numbers.
  std::array<std::uint64_t, kMostFeatures> value;
  std::memcpy(value.data(), values.value.data(), sizeof value);
  std::int64_t sum = 0;
  const std::uint8_t* feature = asked.data();
  const double* bound = limit.data();
  const std::int16_t* leaf = leaves.data();
  for (std::size_t tree = 0; tree < size(); ++tree) {
    std::uint64_t number = 0;
    for (std::size_t question = kTreeDepth; question-- > 0;) {
      const std::uint64_t below =
          std::bit_cast<std::uint64_t>(bound[question]) - value[feature[question]];
      number = number << 1 | below >> 63;
    }
    sum += leaf[number];
    feature += kTreeDepth;
    bound += kTreeDepth;
    leaf += kTreeLeaves;
  }
  return double(sum) * kLeafUnit;
}

double BoostedTrees::at(const Coordinates& shape) const {
  if (empty()) return 0;
  const double first = shape.value[0];
  if (features != Features::decode || first < 1)
    return at(features_of(features, shape, processors));
  int exponent = 0;
  constexpr double steps = 8;  // of a mantissa from 0.5 to 1: four an octave
  const double place = std::frexp(first, &exponent) * steps;
  const double below = double(std::int64_t(place));
  const auto there = [&](double node) {
    Coordinates moved = shape;
    moved.value[0] = std::ldexp(node / steps, exponent);
    return at(features_of(features, moved, processors));
  };
  const double share = place - below;
  const double start = there(below);
  return share == 0 ? start : start * (1 - share) + there(below + 1) * share;
}

}  // namespace engine
