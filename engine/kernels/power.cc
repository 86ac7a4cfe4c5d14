#include "engine/kernels/power.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/attention.h"
#include "engine/kernels/gemm.h"

namespace engine {
namespace {

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

// Multiprocessors are busy as long as a kernel runs. Engines of their own copy to and from the host, and leave them at rest.
Watts drawn_while_it_runs(const Op& op, const Device& device) {
  const auto* copy = std::get_if<Copy>(&op);
  const bool by_engines = copy != nullptr && copy->path != CopyPath::device;
  return by_engines ? std::min(device.idle_power, device.busy_power) : device.busy_power;
}

}  // namespace

FlopsPerSecond matrix_peak_of(const Op& op, const Device& device) {
  return std::visit(MatrixPeakOf{device}, op);
}

Watts power_at_rest(const Device& device) {
  return states_power(device) ? device.idle_power : Watts{0};
}

// Devices state what arithmetic draws at the clocks that their limit leaves it; the same work draws more at a higher clock and
// voltage. Three training steps on an H200 that wait for their host, and so run at the full clock, draw as much as if their
// arithmetic drew 1.21, 1.21 and 1.21 times those figures (specs/calibration/h200-sxm/train_loads.csv).
constexpr double kAtFullClock = 1.2;

Joules drawn_by_memory(Bytes bytes, const Device& device) {
  return device.memory_power * (bytes / device.memory_bandwidth);
}

// A board holds its power to the limit on average over some milliseconds, which is many kernels, so that all of them run at
// one clock; unlike a kernel by itself, none that waits for memory clocks down alone.
FullClock at_full_clock(const KernelTime& kernel, const Op& op, const Device& device) {
  if (!states_power(device)) return {};
  const FlopsPerSecond peak = matrix_peak_of(op, device);
  FullClock full;
  Joules by_arithmetic;
  if (peak.value > 0) {
    full.arithmetic = std::min(kernel.compute, kernel.time);
    by_arithmetic =
        device.busy_power * full.arithmetic + device.tensor_power * (kernel.flops / peak);
  }
  const Joules waiting = drawn_while_it_runs(op, device) * (kernel.time - full.arithmetic);
  full.energy = kAtFullClock * by_arithmetic + waiting + drawn_by_memory(kernel.bytes, device);
  return full;
}

// At 1/s of the clock arithmetic takes s times as long, and all but memory draws 1/s of the energy: power goes as the square of
// the clock, which is the default of `serving.clock.power_exponent`. The limit times arithmetic s + other + at_rest is what is
// drawn: a quadratic equation in s. More of any part takes longer all in all, so that no faster device is slower by it.
double clock_slowdown(const ClockedWork& work, const Device& device) {
  if (!states_power(device) || work.arithmetic.value <= 0) return 1;
  const Joules fixed = work.memory + device.idle_power * work.at_rest;
  const double a = (device.power_limit * work.arithmetic).value;
  const double b = (device.power_limit * (work.other + work.at_rest) - fixed).value;
  const double c = (work.energy - work.memory).value;
  if (a + b >= c) return 1;
  return (std::sqrt(b * b + 4 * a * c) - b) / (2 * a);
}

Joules at_clock(double scale, Joules by_processor, Seconds time, const Device& device) {
  if (scale == 1) return by_processor;
  const Joules at_rest = std::min(device.idle_power, device.busy_power) * time;
  return at_rest + (by_processor - at_rest) * scale;
}

// Over the limit a kernel runs at the clock at which it draws just that: the law of a pass, for one kernel. Its time grows with
// each part of the work, so more bandwidth, peak or power never slows a kernel down. What any busy multiprocessor draws counts
// against the limit while arithmetic runs: waiting for memory, it may clock down for free. Below the limit it does not, and draws
// that as long as it runs. Only what is reported follows from the present clock: the limit goes by the stated powers, so that no
// higher clock is slower.
Joules sustain(KernelTime& kernel, const Op& op, const Device& device) {
  if (!states_power(device)) return {};
  const FlopsPerSecond peak = matrix_peak_of(op, device);
  const Seconds traffic = std::min(kernel.bytes / device.memory_bandwidth, kernel.time);
  const Seconds arithmetic = std::min(kernel.compute, kernel.time);
  Joules by_arithmetic = device.busy_power * arithmetic;
  if (peak.value > 0) {
    by_arithmetic = kAtFullClock * (by_arithmetic + device.tensor_power * (kernel.flops / peak));
  }
  const Joules by_traffic = device.memory_power * traffic;
  const auto limited_beside = [&](Joules memory) {
    return arithmetic *
           clock_slowdown(
               {.arithmetic = arithmetic, .energy = by_arithmetic + memory, .memory = memory},
               device);
  };
  const Seconds limited = limited_beside(by_traffic);
  if (peak.value <= 0 || limited <= kernel.time) {
    const Joules waiting = drawn_while_it_runs(op, device) * (kernel.time - arithmetic);
    const Joules drawn =
        at_clock(device.on_chip_scale(), by_arithmetic + waiting, kernel.time, device);
    return std::min(drawn + by_traffic, device.power_limit * kernel.time);
  }
  // Without one kind of work its energy is saved, too; parts that draw nothing save nothing any more.
  const Seconds burst = kernel.time;
  const Savings in_burst = kernel.saved;
  kernel.time = limited;
  kernel.saved = {};
  kernel.saved[Bound::compute] =
      limited - std::max(burst - in_burst[Bound::compute], by_traffic / device.power_limit);
  kernel.saved[Bound::memory] =
      limited - std::max(burst - in_burst[Bound::memory], limited_beside({}));
  return device.power_limit * limited;
}

}  // namespace engine
