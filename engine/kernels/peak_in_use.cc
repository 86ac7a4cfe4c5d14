#include "engine/kernels/peak_in_use.h"

#include <algorithm>

#include "engine/kernels/attention.h"
#include "engine/kernels/gemm.h"

namespace engine {

FlopsPerSecond peak_in_use(const Device& device, const Quantization& quant) {
  const Dtype products = compute_dtype(device, quant.weights, quant.activations);
  const Dtype attention = attention_dtype(device, Dtype::bf16, quant.activations);
  return std::max(matrix_peak(device, products), matrix_peak(device, attention));
}

}  // namespace engine
