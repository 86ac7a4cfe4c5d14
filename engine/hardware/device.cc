#include "engine/hardware/device.h"

#include <algorithm>
#include <string>

namespace engine {
namespace {

FlopsPerSecond rated_peak(const Device& device, Dtype dtype) {
  const MatrixPeaks& peak = device.peak;
  switch (dtype) {
    case Dtype::fp32:
      return peak.fp32.value > 0 ? peak.fp32 : device.vector_peak;
    case Dtype::tf32:
      return peak.tf32;
    case Dtype::bf16:
      return peak.bf16;
    case Dtype::fp16:
      return peak.fp16;
    case Dtype::fp8:
      return peak.fp8;
    case Dtype::int8:
      return peak.int8;
    case Dtype::int4:
      return peak.int4;
    case Dtype::fp4:
      return peak.fp4;
  }
  return {};
}

double ratio(double now, double rated) { return now > 0 && rated > 0 ? now / rated : 1; }

double size_scale(const Device& device) {
  return ratio(double(device.multiprocessors), double(device.rated_multiprocessors));
}

// Of all multiprocessors at the rated clock.
FlopsPerSecond rated_peak_in_16_bits(const Device& device) {
  const FlopsPerSecond peak = std::max(device.peak.bf16, device.peak.fp16);
  return peak * size_scale(device);
}

}  // namespace

FlopsPerSecond grid_peak(const Device& device) {
  const double multipliers = double(device.array.rows) * double(device.array.columns);
  return FlopsPerSecond{2 * multipliers * device.processors() * device.clock.value};
}

bool hold_stated_rates(Device& device, const std::function<bool(std::string_view name)>& states) {
  if (states("rated_clock") || states("rated_multiprocessors")) return false;
  const double clock = device.on_chip_scale(), size = size_scale(device);
  bool any = false;
  const auto hold = [&](const std::string& name, auto& rate, double scale) {
    const bool stated = states(name);
    any = any || stated;
    if (!stated) rate = rate * scale;
  };
  Device held = device;
  MatrixPeaks::fields(held.peak, [&](std::string_view format, FlopsPerSecond& peak, auto&&...) {
    hold("peak." + std::string(format), peak, clock * size);
  });
  hold("vector_peak", held.vector_peak, clock);
  hold("l2_bandwidth", held.l2_bandwidth, clock);
  if (!any) return false;
  held.rated_clock = held.clock;
  held.rated_multiprocessors = held.multiprocessors;
  device = held;
  return true;
}

FlopsPerSecond matrix_peak(const Device& device, Dtype dtype) {
  if (device.array.on() && device.peak == MatrixPeaks{}) [[unlikely]]
    return grid_peak(device);
  return rated_peak(device, dtype) * (size_scale(device) * device.on_chip_scale());
}

bool on_matrix_units(const Device& device, Dtype dtype) {
  return dtype != Dtype::fp32 || device.array.on() || device.peak.fp32 > device.vector_peak;
}

void follow_rated_powers(Device& device) {
  const RatedPowers& rated = device.rated_powers;
  if (rated.memory_bandwidth.value <= 0) return;
  const double by_size =
      ratio(double(device.multiprocessors), double(rated.multiprocessors)) * device.energy_scale;
  const double by_peak =
      ratio(rated_peak_in_16_bits(device).value, rated.peak.value) * device.energy_scale;
  const double by_bandwidth = ratio(device.memory_bandwidth.value, rated.memory_bandwidth.value);
  if (rated.idle.value > 0) {
    const Watts all = rated.busy + rated.tensor + rated.memory;
    const double of_memory = all.value > 0 ? rated.memory / all : 0;
    device.idle_power = rated.idle * (of_memory * by_bandwidth + (1 - of_memory) * by_size);
  }
  if (rated.busy.value > 0) device.busy_power = device.idle_power + rated.busy * by_size;
  if (rated.tensor.value > 0) device.tensor_power = rated.tensor * by_peak;
  if (rated.memory.value > 0) device.memory_power = rated.memory * by_bandwidth;
}

void record_powers(Device& device) {
  device.rated_powers = {.multiprocessors = device.multiprocessors,
                         .peak = rated_peak_in_16_bits(device),
                         .memory_bandwidth = device.memory_bandwidth,
                         .idle = device.idle_power,
                         .busy = std::max(Watts{0}, device.busy_power - device.idle_power),
                         .tensor = device.tensor_power,
                         .memory = device.memory_power};
  device.energy_scale = 1;
}

}  // namespace engine
