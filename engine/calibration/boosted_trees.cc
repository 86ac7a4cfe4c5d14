#include "engine/calibration/boosted_trees.h"

#include <cmath>

namespace engine {

double BoostedTrees::at(const FeatureValues& values) const {
  std::int64_t sum = 0;
  const std::uint8_t* feature = asked.data();
  const double* bound = limit.data();
  const std::int16_t* leaf = leaves.data();
  for (std::size_t tree = 0; tree < size(); ++tree) {
    std::size_t number = 0;
    for (std::size_t question = 0; question < kTreeDepth; ++question) {
      const bool above = values.value[feature[question]] > bound[question];
      number |= std::size_t(above) << question;
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
