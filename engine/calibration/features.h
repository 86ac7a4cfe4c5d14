// What makes two calls alike in the eyes of a kernel library, as numbers that boosted trees can split:
// sizes, and how well they fill tiles and waves. No logarithms: a split asks only which of two is larger.
#pragma once

#include <array>
#include <cstddef>

#include "engine/calibration/coordinates.h"

namespace engine {

constexpr std::size_t kMostFeatures = 32;

struct FeatureValues {
  std::array<double, kMostFeatures> value{};
  std::size_t count = 0;
};

// `processors` are the multiprocessors of the device that was measured.
FeatureValues features_of(Features which, const Coordinates& shape, double processors);

}  // namespace engine
