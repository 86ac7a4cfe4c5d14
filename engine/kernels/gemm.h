// Time of matrix products: one, many of one shape, one per expert, and convolutions of images, which are computed as such.
#pragma once

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

// The format a product is computed in: narrower weights are expanded to the activations' format.
Dtype compute_dtype(Dtype weights, Dtype activations);

// The same on a device that may lack the format: then its 16-bit one, as kernels for it do.
Dtype compute_dtype(const Device& device, Dtype weights, Dtype activations);

// Which fitted format a product belongs to; false: none (32 bits).
bool has_gemm_format(Dtype weights, Dtype activations);
GemmFormat gemm_format(Dtype weights, Dtype activations, std::int64_t group);

// Calls of the generation itself are behind the set that speaks for it.
template <class Fit>
bool measures_generation(const FittedSets<Fit>& sets, ParameterSet chosen) {
  return !is_unmeasured(chosen) && sets.find(chosen) != nullptr;
}

KernelTime gemm_time(const Gemm& gemm, const Device& device,
                     const Calibration* calibration = nullptr);
KernelTime grouped_gemm_time(const GroupedGemm& gemm, const Device& device,
                             const Calibration* calibration = nullptr);
KernelTime convolution_time(const ImageConvolution& op, const Device& device,
                            const Calibration* calibration = nullptr);

// Two kernels that would do, neither of which was measured on the generation: the faster, with an interval that reaches to the slower.
KernelTime faster_of(const KernelTime& one, const KernelTime& other);

// The arithmetic of a kernel in formats of products, on their units.
struct UnitWork {
  double flops;
  Dtype weights, activations;
  std::int64_t group = 0;
};

// What that takes, in microseconds, at the pace of the device's largest products; 0 where no calibration speaks for them. Experts and
// attention multiply on the same units at the same clocks, and expanded weights do: none is faster, whatever its shape.
double least_arithmetic(const UnitWork& work, const Device& device, const Calibration& calibration);

// A time no shorter than `least`, and no less arithmetic in it.
void take_at_least(Seconds least, Seconds arithmetic, KernelTime& time);

// What a narrow product takes longer whose sums are kept in 32 bits.
void sum_precisely(const Device& device, Dtype format, KernelTime& time);

Coordinates gemm_coordinates(const Gemm& gemm);
Coordinates grouped_gemm_coordinates(const GroupedGemm& gemm);

// Arithmetic the device spends its peak on when `groups` products run in whole tiles and waves.
double occupied_flops(double m, double n, double k, double groups, double multiprocessors);

}  // namespace engine
