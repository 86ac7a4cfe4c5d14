#include "engine/kernels/wide_products.h"

#include <algorithm>

#include "engine/calibration/parameter_set.h"
#include "engine/kernels/form.h"

namespace engine {
namespace {

struct Reached {
  double of_peak;
  double of_bandwidth;
  double low, high;  // nine calls in ten, over the time predicted
};

// Vector units: cuBLAS in fp32 on A100, V100 and H200 (public calls of the first two that take 0.2 ms and longer; our own of the third,
// specs/calibration/h200-sxm/fp32_products.csv): medians of 0.76, 0.84 and 0.71 of the peak with whole tiles and waves.
constexpr Reached kOnVectorUnits{0.77, 0.8, 0.79, 1.6};
// Boards whose limit is below what that draws clock down, and older libraries have smaller tiles: P100 0.61, T4 0.41, P4 0.34.
constexpr double kHighElsewhere = 3.5;
// Matrix units in fp32: public calls of an MI100, median 0.64.
constexpr Reached kOnMatrixUnits{0.64, 0.8, 0.88, 2.7};
// Matrix units in tf32: our H200, the same table.
constexpr Reached kInTf32{0.64, 0.8, 0.8, 1.6};

Reached reached(Dtype dtype, const Device& device) {
  if (dtype == Dtype::tf32) return kInTf32;
  return on_matrix_units(device, dtype) ? kOnMatrixUnits : kOnVectorUnits;
}

// Generations that the figures are of.
bool like_measured(ParameterSet generation) {
  return generation == ParameterSet::ampere || generation == ParameterSet::hopper;
}

}  // namespace

KernelTime reached_in_32_bits(const KernelTime& bound, Dtype dtype, const Device& device,
                              const Calibration* calibration) {
  const ParameterSet generation = choose_set(device);
  if (calibration == nullptr || generation == ParameterSet::none) return bound;
  const Reached share = reached(dtype, device);
  KernelTime parts = bound;
  parts.compute = parts.compute / share.of_peak;
  parts.memory = parts.memory / share.of_bandwidth;
  parts.l2 = parts.l2 / share.of_bandwidth;
  KernelTime time = roofline_time(parts, 0, {}, device);
  time.least = bound.least;
  time.tier = Tier::transfer;
  time.extrapolated = !like_measured(generation);
  time.low = share.low;
  time.high = time.extrapolated ? std::max(share.high, kHighElsewhere) : share.high;
  return time;
}

}  // namespace engine
