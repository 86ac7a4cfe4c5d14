// Time of matrix products: one, many of one shape, and one per expert.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

// The format a product is computed in: narrower weights are expanded to the activations' format.
Dtype compute_dtype(Dtype weights, Dtype activations);

KernelTime gemm_time(const Gemm& gemm, const Device& device);
KernelTime grouped_gemm_time(const GroupedGemm& gemm, const Device& device);

}  // namespace engine
