#include "engine/kernels/elementwise.h"
#include "engine/kernels/recurrent.h"

namespace engine {

KernelTime convolution_time(const Convolution& op, const Device& device) {
  const double values = op.tokens * double(op.channels);
  return elementwise_time({.rows = op.tokens,
                           .resident_bytes = values * 2 * 2,
                           .cold_bytes = double(op.channels * op.width) * 2,
                           .flops = 2 * values * double(op.width)},
                          device);
}

}  // namespace engine
