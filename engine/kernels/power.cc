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

Watts power_at_rest(const Device& device) {
  return states_power(device) ? device.idle_power : Watts{0};
}

// Energy over the limit, of parts that each grow with the work: so more bandwidth, peak or power never
// slows a kernel down. What any busy multiprocessor draws counts while arithmetic runs: waiting for memory,
// it may clock down for free.
Joules sustain(KernelTime& kernel, const Op& op, const Device& device) {
  if (!states_power(device)) return {};
  const FlopsPerSecond peak = std::visit(MatrixPeakOf{device}, op);
  const Seconds traffic = std::min(kernel.bytes / device.memory_bandwidth, kernel.time);
  const Seconds arithmetic = std::min(kernel.compute, kernel.time);
  Joules by_arithmetic = device.busy_power * arithmetic;
  if (peak.value > 0) by_arithmetic += device.tensor_power * (kernel.flops / peak);
  const Joules by_traffic = device.memory_power * traffic;
  const Seconds limited = (by_arithmetic + by_traffic) / device.power_limit;
  if (peak.value <= 0 || limited <= kernel.time) {
    const Joules at_rest = device.idle_power * (kernel.time - arithmetic);
    return std::min(by_arithmetic + by_traffic + at_rest, device.power_limit * kernel.time);
  }
  // Without one kind of work its energy is saved, too; parts that draw nothing save nothing any more.
  const Seconds burst = kernel.time;
  const Savings in_burst = kernel.saved;
  kernel.time = limited;
  kernel.saved = {};
  kernel.saved[Bound::compute] =
      limited - std::max(burst - in_burst[Bound::compute], by_traffic / device.power_limit);
  kernel.saved[Bound::memory] =
      limited - std::max(burst - in_burst[Bound::memory], by_arithmetic / device.power_limit);
  return device.power_limit * limited;
}

}  // namespace engine
