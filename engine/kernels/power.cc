#include "engine/kernels/power.h"

#include <algorithm>
#include <cmath>

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
    return of_matrix_units(compute_dtype(device, op.weights, op.activations));
  }
  template <class Attention>
  requires requires(const Attention& op) { op.kv, op.activations; }
  FlopsPerSecond operator()(const Attention& op) const {
    return of_matrix_units(attention_dtype(device, op.kv, op.activations));
  }
  template <class Other>
  FlopsPerSecond operator()(const Other&) const {
    return {};
  }

  FlopsPerSecond of_matrix_units(Dtype dtype) const {
    return on_matrix_units(device, dtype) ? matrix_peak(device, dtype) : FlopsPerSecond{};
  }
};

// Engines of their own copy to and from the host, and leave multiprocessors at rest.
bool keeps_multiprocessors_busy(const Op& op) {
  const auto* copy = std::get_if<Copy>(&op);
  return copy == nullptr || copy->path == CopyPath::device;
}

double squared(double value) { return value * value; }

}  // namespace

FlopsPerSecond matrix_peak_of(const Op& op, const Device& device) {
  return std::visit(MatrixPeakOf{device}, op);
}

Watts power_at_rest(const Device& device) {
  return states_power(device) ? device.idle_power : Watts{0};
}

Watts rest_while_busy(const Device& device) {
  return std::min(device.idle_power, device.busy_power);
}

Seconds on_chip_time(Bytes bytes, const Device& device) { return bytes / cache_rate(device); }

// Powers are stated for the clock of the device's file. Voltage follows the clock, so that what a processor draws above rest goes as the
// square of it (`serving.clock.power_exponent` for steps that choose theirs). So does what traffic draws, most of it on its way through the
// chip: products that an H200's limit slows to 0.7 of its clock draw half as much for their bytes (specs/calibration/h200-sxm/power.csv).
Drawn drawn_by(const KernelTime& kernel, const Op& op, const Device& device) {
  if (!states_power(device)) return {};
  const FlopsPerSecond peak = matrix_peak_of(op, device);
  const double lower = squared(device.on_chip_scale());
  Drawn drawn;
  drawn.at_rest = rest_while_busy(device) * kernel.time;
  if (keeps_multiprocessors_busy(op)) {
    drawn.busy = (device.busy_power - rest_while_busy(device)) * kernel.time * lower;
  }
  if (peak.value > 0) drawn.products = device.tensor_power * (kernel.flops / peak) * lower;
  drawn.memory =
      device.memory_power * std::min(kernel.bytes / device.memory_bandwidth, kernel.time) * lower;
  return drawn;
}

namespace {

Device with_rated_clock(Device device) {
  if (device.rated_clock.value == 0) device.rated_clock = device.clock;
  return device;
}

// The clock at which a kernel draws just the limit, by the method of false position in the square of the clock, with which power goes
// nearly in a straight line.
class ClockSearch {
 public:
  ClockSearch(const Reclocked& again, const Op& op, const Device& device)
      : again_(again), op_(op), slower_(with_rated_clock(device)) {}

  // The kernel, at the set clock, draws more than the limit.
  Sustained find(KernelTime& kernel, Joules drawn) {
    End above = end_of(squared(slower_.on_chip_scale()), kernel, drawn);
    End below = above;
    const double rest = rest_while_busy(slower_).value, limit = slower_.power_limit.value;
    while (below.over > 0 && below.square > kLeast) {
      above = below;
      const double left = (limit - rest) / (above.over + limit - rest);
      below = at(above.square * std::clamp(left, kFarthest, kNearest));
    }
    narrow(above, below);
    kernel = below.kernel;
    // Rounding may leave it a hair above.
    return {std::min(below.energy, slower_.power_limit * kernel.time), std::sqrt(below.square)};
  }

 private:
  static constexpr int kMostSteps = 60;
  static constexpr double kFarthest = 0.02, kNearest = 0.98;  // of the square in one step
  static constexpr double kLeast = 1e-10;                     // square of a clock that is none
  static constexpr double kClose = 1e-12;                     // of the limit, or of the square

  struct End {
    double square = 1;  // of the clock
    double over = 0;    // power above the limit
    KernelTime kernel;
    Joules energy;
  };

  End end_of(double square, const KernelTime& kernel, Joules drawn) const {
    return {square, (drawn / kernel.time - slower_.power_limit).value, kernel, drawn};
  }
  End at(double square) {
    slower_.clock = slower_.rated_clock * std::sqrt(square);
    const KernelTime kernel = again_.on(slower_);
    return end_of(square, kernel, drawn_by(kernel, op_, slower_).total());
  }

  // Brings both ends together. An end that stays is made to weigh half, so that it moves, too.
  void narrow(End above, End& below) {
    const double close = kClose * slower_.power_limit.value;
    double over = above.over, under = -below.over;
    for (int i = 0, moved = 0; i < kMostSteps; ++i) {
      if (below.over >= -close || above.square - below.square <= kClose * above.square) return;
      const End next = at(below.square + (above.square - below.square) * (under / (over + under)));
      if (next.over > close) {
        above = next;
        over = next.over;
        if (moved > 0) under /= 2;
        moved = 1;
      } else {
        below = next;
        under = -next.over;
        if (moved < 0) over /= 2;
        moved = -1;
      }
    }
  }

  const Reclocked& again_;
  const Op& op_;
  Device slower_;
};

}  // namespace

Sustained sustain(KernelTime& kernel, const Reclocked& again, const Op& op, const Device& device) {
  if (!states_power(device)) return {.clock = device.on_chip_scale()};
  const Joules drawn = drawn_by(kernel, op, device).total();
  if (drawn <= device.power_limit * kernel.time) return {drawn, device.on_chip_scale()};
  return ClockSearch(again, op, device).find(kernel, drawn);
}

Seconds clocked_time(const KernelTime& kernel, const Reclocked& again, const Device& device) {
  constexpr double lower = 0.75;  // most of what limits leave lies between that and the full clock
  Device slower = with_rated_clock(device);
  slower.clock = device.clock * lower;
  const Seconds longer = again.on(slower).time - kernel.time;
  return std::clamp(longer * (lower / (1 - lower)), Seconds{0}, kernel.time);
}

namespace {

// At 1 / times of the clock.
struct SlowedWork {
  Seconds time;
  Joules energy;
};
SlowedWork slowed(const ClockedWork& work, double times, const Device& device) {
  const Seconds kernels = std::max(work.time + work.clocked * (times - 1), work.on_chip * times);
  const Seconds time = kernels + work.at_rest;
  const Joules busy = work.time.value > 0 ? work.busy * (kernels / work.time) : Joules{0};
  return {time, rest_while_busy(device) * kernels + device.idle_power * work.at_rest +
                    (busy + work.memory) * (1 / squared(times)) + work.products * (1 / times)};
}

}  // namespace

// Time grows and power falls with `times`: halving finds where they meet. More of any part takes longer all in all, so that no faster
// device is slower by it. Near what the board draws at rest nothing is left for work.
double clock_slowdown(const ClockedWork& work, const Device& device) {
  if (!states_power(device)) return 1;
  const auto fits = [&](double times) {
    const SlowedWork slow = slowed(work, times, device);
    return slow.energy <= device.power_limit * slow.time;
  };
  if (fits(1)) return 1;
  constexpr double most = 1e6;
  double low = 1, high = 2;
  while (high < most && !fits(high)) {
    low = high;
    high *= 2;
  }
  for (int i = 0; i < 52; ++i) {
    const double middle = (low + high) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace engine
