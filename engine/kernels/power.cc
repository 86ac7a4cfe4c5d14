#include "engine/kernels/power.h"

#include <algorithm>

#include "engine/kernels/attention.h"
#include "engine/kernels/gemm.h"

namespace engine {
namespace {

// Peak of the matrix units in the format an op computes in; 0: it does not use them.
struct MatrixPeakOf {
  const Device& device;

  template <class Product>
  requires requires(const Product& op) { op.weights, op.activations; }
  FlopsPerSecond operator()(const Product& op) const {
    return matrix_peak(device, compute_dtype(device, op.weights, op.activations));
  }
  template <class Attention>
  requires requires(const Attention& op) { op.kv, op.activations; }
  FlopsPerSecond operator()(const Attention& op) const {
    return matrix_peak(device, attention_dtype(device, op.kv, op.activations));
  }
  template <class Other>
  FlopsPerSecond operator()(const Other&) const {
    return {};
  }
};

}  // namespace

// Energy over the limit, of parts that each grow with the work: so more bandwidth, peak or power never
// slows a kernel down. What any busy multiprocessor draws counts while arithmetic runs: waiting for memory,
// it may clock down for free.
void sustain(KernelTime& kernel, const Op& op, const Device& device) {
  if (device.tensor_power.value <= 0 || device.power_limit.value <= 0) return;
  const FlopsPerSecond peak = std::visit(MatrixPeakOf{device}, op);
  if (peak.value <= 0) return;
  const Seconds traffic = kernel.bytes / device.memory_bandwidth;
  const Seconds by_arithmetic =
      (device.busy_power / device.power_limit) * std::min(kernel.compute, kernel.time) +
      (device.tensor_power / device.power_limit) * (kernel.flops / peak);
  const Seconds by_traffic =
      (device.memory_power / device.power_limit) * std::min(traffic, kernel.time);
  const Seconds limited = by_arithmetic + by_traffic;
  if (limited <= kernel.time) return;
  // Without one kind of work its energy is saved, too; parts that draw nothing save nothing any more.
  const Seconds burst = kernel.time;
  const Savings in_burst = kernel.saved;
  kernel.time = limited;
  kernel.saved = {};
  kernel.saved[Bound::compute] = limited - std::max(burst - in_burst[Bound::compute], by_traffic);
  kernel.saved[Bound::memory] = limited - std::max(burst - in_burst[Bound::memory], by_arithmetic);
}

}  // namespace engine
