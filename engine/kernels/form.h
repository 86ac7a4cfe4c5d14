// What the fitted forms share: a device in their units, how parts overlap, and the labels of a time.
#pragma once

#include <algorithm>
#include <cmath>

#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/traffic.h"

namespace engine {

// The units of the fits: microseconds, bytes and FLOP per microsecond, GHz.
struct DeviceRates {
  double processors;
  double rated_processors;  // those of the device's file
  double clock;
  double exponentials;  // of one processor, a clock
  double bandwidth;
  double cache;       // bytes
  double cache_rate;  // most the cache can deliver
  double launch;
};

inline DeviceRates device_rates(const Device& device) {
  // The fits count a MiB of cache as a million bytes.
  constexpr double mib_per_mb = 1.048576;
  return {.processors = device.processors(),
          .rated_processors = device.rated_multiprocessors > 0
                                  ? double(device.rated_multiprocessors)
                                  : device.processors(),
          .clock = device.clock.value / 1e9,
          .exponentials = device.exponentials,
          .bandwidth = device.memory_bandwidth.value / 1e6,
          .cache = std::max(1.0, device.l2_capacity.value / mib_per_mb),
          .cache_rate = cache_rate(device).value / 1e6,
          .launch = device.launch_latency.value * 1e6};
}

inline double flop_rate(const Device& device, Dtype dtype) {
  return matrix_peak(device, dtype).value / 1e6;
}

// The floor of a fitted kernel on a device whose launches take longer or shorter than those of the
// device it was fitted on.
inline double shifted_floor(double floor, const SetFacts& set, const DeviceRates& rates) {
  return std::max(0.0, floor + rates.launch - set.launch);
}

// How much longer a launch takes than on the device that a kernel was fitted on; 1 where that one's launches took no time.
inline double launch_pace(const SetFacts& set, const DeviceRates& rates) {
  return set.launch > 0 ? rates.launch / set.launch : 1;
}

// Two parts that overlap: p = 1 is their sum, a large p their maximum.
inline double overlapped(double a, double b, double p) {
  const double longer = std::max(a, b);
  const double shorter = std::min(a, b);
  if (shorter <= 0) return longer;
  if (p == 1) return a + b;
  const double share = shorter / longer;
  if (p == 8) {  // what most fits of decode attention come to: no library call
    const double fourth = share * share * share * share;
    return longer * std::sqrt(std::sqrt(std::sqrt(1 + fourth * fourth)));
  }
  const double rest = std::pow(share, p);
  const double root = 1 / p;
  // Four terms of the series are exact to rounding where the shorter part hardly matters.
  if (rest < 1e-4) {
    return longer * (1 + root * rest * (1 + (root - 1) / 2 * rest * (1 + (root - 2) / 3 * rest)));
  }
  return longer * std::pow(1 + rest, root);
}

// Share of `bytes` that stay in a cache of `cache` bytes: falls from one to zero around its size.
inline double held_share_4(double bytes, double cache) {
  const double r = bytes / cache;
  const double r2 = r * r;
  return 1 / (1 + r2 * r2);
}
inline double held_share_6(double bytes, double cache) {
  const double r = bytes / cache;
  const double r2 = r * r;
  return 1 / (1 + r2 * r2 * r2);
}

// What the cache delivers when it is `times` faster than memory as reached: no more than its peak.
inline double cache_rate(double memory_rate, double times, const DeviceRates& device) {
  return std::max(memory_rate, std::min(memory_rate * times, device.cache_rate));
}

// Parts in microseconds, as a form computes them.
struct FormTime {
  double compute = 0;
  double memory = 0;
  double l2 = 0;
  double launch = 0;
  double time = 0;
  double least = 0;
  double splits = 1;  // parts that one unit of its work is shared among
  // Of `compute`: what goes without arithmetic, cache or memory. The rest is latency, which none of them saves.
  double arithmetic_share = 1;
  double cache_share = 0;
  double memory_share = 0;
};

// A form that was fitted to other shapes may promise more than the matrix units do.
inline void bound_arithmetic(double least, FormTime& form) {
  form.compute = std::max(form.compute, least);
  form.time = std::max(form.time, form.launch + least);
}

// The answer of a fitted form: labels from the set, and the residual of a swept device.
KernelTime fitted_time(const FormTime& form, Flops flops, Bytes bytes, const SetFacts& set,
                       ParameterSet chosen, const Coordinates& shape);

// The answer of the roofline: arithmetic overlaps with traffic, the two levels of traffic share one
// pipeline, and the floor overlaps with nothing.
inline KernelTime roofline_time(KernelTime parts, double cold_bytes, FlopsPerSecond peak,
                                const Device& device) {
  const Seconds traffic = parts.memory + parts.l2;
  const Seconds work = std::max(parts.compute, traffic);
  parts.time = parts.launch + work;
  parts.saved[Bound::compute] = work - traffic;
  parts.saved[Bound::memory] = work - std::max(parts.compute, parts.l2);
  parts.saved[Bound::l2] = work - std::max(parts.compute, parts.memory);
  parts.saved[Bound::launch] = parts.launch;
  parts.least = Bytes{cold_bytes} / device.memory_bandwidth;
  if (peak.value > 0) parts.least = std::max(parts.least, parts.flops / peak);
  return parts;
}

}  // namespace engine
