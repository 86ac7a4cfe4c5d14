#include "engine/kernels/power.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/kernels/attention.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/traffic.h"

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
// the clock, which is the default of `serving.clock.power_exponent`. `power` times growing s + other is then what is drawn:
// fixed + falling / s, a quadratic equation in s. Infinity: no clock is low enough. `least`: s at the highest clock there is.
double quadratic_slowdown(Seconds growing, Seconds other, Joules fixed, Joules falling, Watts power,
                          double least) {
  const double a = (power * growing).value;
  const double b = (power * other - fixed).value;
  const double c = falling.value;
  if (least * (a * least + b) >= c) return least;
  if (a <= 0) return b > 0 ? c / b : std::numeric_limits<double>::infinity();
  return (std::sqrt(b * b + 4 * a * c) - b) / (2 * a);
}

// Work takes longer by its arithmetic or, at clocks at which the cache delivers no more than memory does, by all its traffic:
// whichever is longer at a clock.
double slowdown_of(const ClockedWork& work, Joules fixed, Joules falling, Watts power,
                   double least) {
  const Seconds longest = std::max(work.arithmetic, work.on_chip);
  return std::min(
      quadratic_slowdown(work.arithmetic, work.other + work.at_rest, fixed, falling, power, least),
      quadratic_slowdown(longest, work.at_rest, fixed, falling, power, least));
}

double scale_below_rated(const Device& device) { return std::min(1.0, device.on_chip_scale()); }

// More of any part takes longer all in all, so that no faster device is slower by it. What a board draws at rest goes on at any clock:
// near that nothing is left for work. It is part of what busy multiprocessors draw, and where limits are as usual the fit to
// sustained loads has it in what falls with the clock; so it counts against the powers as stated, which are less than at the full clock.
double clock_slowdown(const ClockedWork& work, const Device& device) {
  if (!states_power(device)) return 1;
  const double scale = scale_below_rated(device), least = 1 / scale;
  const Joules falling = work.energy - work.memory;
  const Joules resting = device.idle_power * work.at_rest;
  const double fitted =
      slowdown_of(work, work.memory + resting, falling, device.power_limit, least) * scale;
  const Watts above_rest = device.power_limit - device.idle_power;
  if (above_rest.value <= 0) return fitted;
  const Joules for_work = std::max(
      Joules{0}, falling / kAtFullClock - device.idle_power * (work.arithmetic + work.other));
  return std::max(fitted, slowdown_of(work, work.memory, for_work, above_rest, least) * scale);
}

Joules at_clock(double scale, Joules by_processor, Seconds time, const Device& device) {
  if (scale == 1) return by_processor;
  const Joules at_rest = std::min(device.idle_power, device.busy_power) * time;
  return at_rest + (by_processor - at_rest) * (scale * scale);
}

Seconds rated_on_chip_time(Bytes bytes, const Device& device) {
  return bytes / std::max(device.memory_bandwidth, device.l2_bandwidth);
}

Seconds on_chip_time(Bytes bytes, const Device& device) { return bytes / cache_rate(device); }

namespace {

// A kernel's work at the clock that powers are stated for, as the limit sees it.
struct LimitedWork {
  Seconds arithmetic, on_chip;
  Joules by_products;  // on top of what busy multiprocessors draw
  Joules memory;
};

// How long work takes that draws `power`: at 1/s of the clock s times `longest`, and 1/s of the energy `for_work`. A quadratic equation
// in the time.
Seconds time_drawing(Watts power, Joules memory, Joules for_work, Seconds longest) {
  const double m = memory.value;
  const double square = m * m + 4 * (for_work * power).value * longest.value;
  return Joules{m + std::sqrt(square)} / (power * 2);
}

// The least time in which a board whose limit is above what it draws at rest does such work. Its clock may fall for free while it
// waits for memory, as long as the cache still delivers what memory does; then everything takes longer.
Seconds least_time_within_limit(const LimitedWork& work, Watts busy, const Device& device) {
  const Watts at_rest = std::min(device.idle_power, busy);
  const Watts above_rest = device.power_limit - at_rest;
  if (above_rest.value <= 0) return Seconds{0};
  const Seconds longest = std::max(work.arithmetic, work.on_chip);
  return time_drawing(above_rest, work.memory, (busy - at_rest) * longest + work.by_products,
                      longest);
}

}  // namespace

// Over the limit a kernel runs at the clock at which it draws just that: the law of a pass, for one kernel. Its time grows with
// each part of the work, so more bandwidth, peak or power never slows a kernel down. What any busy multiprocessor draws counts
// against the limit while arithmetic runs: waiting for memory, it may clock down for free, down to the clock at which the cache gives
// no more than memory (least_time_within_limit). Below the limit it does not, and draws that as long as it runs. The limit picks a clock
// by itself, so what it leaves follows from the kernel at the clock that powers are stated for, whatever clock the device is set to:
// neither is a higher one slower, nor does it help.
Joules sustain(KernelTime& kernel, const Op& op, const Device& device, const KernelTime* at_rated) {
  if (!states_power(device)) return {};
  const FlopsPerSecond peak = matrix_peak_of(op, device);
  const double scale = device.on_chip_scale();
  const double hungrier = peak.value > 0 ? kAtFullClock : 1;
  const Joules by_traffic =
      device.memory_power * std::min(kernel.bytes / device.memory_bandwidth, kernel.time);
  const Watts busy = drawn_while_it_runs(op, device);
  const KernelTime& rated = at_rated != nullptr ? *at_rated : kernel;
  const LimitedWork whole{
      .arithmetic = std::min(rated.compute, rated.time),
      .on_chip = std::min(rated_on_chip_time(rated.bytes, device), rated.time),
      .by_products =
          peak.value > 0 ? device.tensor_power * (rated.flops / peak * scale) : Joules{0},
      .memory = device.memory_power * std::min(rated.bytes / device.memory_bandwidth, rated.time)};
  const auto limited_to = [&](const LimitedWork& work) {
    Seconds fitted;
    if (peak.value > 0 && work.arithmetic.value > 0) {
      const Joules for_arithmetic =
          (device.busy_power * work.arithmetic + work.by_products) * hungrier;
      fitted = time_drawing(device.power_limit, work.memory, for_arithmetic, work.arithmetic);
    }
    return std::max(fitted, least_time_within_limit(work, busy, device));
  };
  const Seconds limited = limited_to(whole);
  if (limited <= kernel.time) {
    const Seconds arithmetic = std::min(kernel.compute, kernel.time);
    const Joules by_products =
        peak.value > 0 ? device.tensor_power * (kernel.flops / peak) : Joules{0};
    const Joules by_arithmetic = (device.busy_power * arithmetic + by_products) * hungrier;
    const Joules waiting = busy * (kernel.time - arithmetic);
    const Joules drawn = at_clock(scale, by_arithmetic + waiting, kernel.time, device);
    return std::min(drawn + by_traffic, device.power_limit * kernel.time);
  }
  // Without one kind of work its energy is saved, too; parts that draw nothing save nothing any more.
  const Seconds burst = kernel.time;
  const Savings in_burst = kernel.saved;
  LimitedWork no_arithmetic = whole, no_traffic = whole;
  no_arithmetic.arithmetic = {};
  no_arithmetic.by_products = {};
  no_traffic.on_chip = {};
  no_traffic.memory = {};
  kernel.time = limited;
  kernel.saved = {};
  kernel.saved[Bound::compute] =
      limited - std::max(burst - in_burst[Bound::compute], limited_to(no_arithmetic));
  kernel.saved[Bound::memory] =
      limited - std::max(burst - in_burst[Bound::memory], limited_to(no_traffic));
  return device.power_limit * limited;
}

}  // namespace engine
