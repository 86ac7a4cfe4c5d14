#include "engine/kernels/elementwise.h"

#include "engine/base/check.h"
#include "engine/kernels/form.h"
#include "engine/kernels/traffic.h"

namespace engine {

Coordinates pass_coordinates(const Elementwise& op) {
  return coordinates(op.rows, (op.cold_bytes + op.resident_bytes) / op.rows);
}

Pass pass_of(Family family) {
  switch (family) {
    case Family::norm:
      return Pass::norm;
    case Family::residual:
      return Pass::residual;
    case Family::rope:
      return Pass::rope;
    case Family::act:
      return Pass::act;
    case Family::embed:
      return Pass::embed;
    case Family::sample:
      return Pass::sample;
    case Family::kv_write:
      return Pass::kv_write;
    case Family::route:
      return Pass::route;
    case Family::copy:
      return Pass::copy;
    default:
      check(false, "an elementwise op belongs to a family of passes");
      return Pass::copy;
  }
}

KernelTime fitted_pass(double bytes, double cold_bytes, Flops flops, const Device& device,
                       const FittedSet<PassFit>& set, ParameterSet chosen,
                       const Coordinates& shape) {
  const DeviceRates rates = device_rates(device);
  const PassFit& fit = set.fit;
  const double memory_rate = rates.bandwidth * fit.eta;
  // The cache delivers to each multiprocessor, but never more than its own peak, nor less than memory.
  const double processors = fit.cl2 * 64e3 * rates.processors * rates.clock;
  const double cache_rate = std::max(memory_rate, std::min(processors, rates.cache_rate));
  const double held = held_share_6(bytes, fit.l2c * rates.cache);
  FormTime form;
  form.memory = bytes * (1 - held) / memory_rate;
  form.l2 = bytes * held / cache_rate;
  form.launch = shifted_floor(fit.floor, set, rates);
  if (device.vector_peak.value > 0) {
    form.compute = flops.value / (device.vector_peak.value * device.on_chip_scale()) * 1e6;
  }
  form.time = form.launch + std::max(form.compute, form.memory + form.l2);
  form.least = std::max(cold_bytes / rates.bandwidth, form.compute);
  return fitted_time(form, flops, Bytes{bytes}, set, chosen, shape);
}

KernelTime elementwise_time(const Elementwise& op, const Device& device, Family family,
                            const Calibration* calibration) {
  const double bytes = op.cold_bytes + op.resident_bytes;
  if (calibration != nullptr) {
    const ParameterSet chosen = choose_set(device);
    const auto& sets = calibration->pass[static_cast<std::size_t>(pass_of(family))];
    if (const auto* set = find_set(sets, chosen)) {
      return fitted_pass(bytes, op.cold_bytes, Flops{op.flops}, device, *set, chosen,
                         pass_coordinates(op));
    }
  }
  const TrafficTime traffic = traffic_time(device, op.cold_bytes, op.resident_bytes);
  KernelTime time{.memory = traffic.memory,
                  .l2 = traffic.l2,
                  .launch = device.launch_latency,
                  .flops = Flops{op.flops},
                  .bytes = Bytes{bytes}};
  // A device file without a vector rate is charged for traffic only.
  const FlopsPerSecond peak = device.vector_peak * device.on_chip_scale();
  if (peak.value > 0) time.compute = time.flops / peak;
  return roofline_time(time, op.cold_bytes, peak, device);
}

}  // namespace engine
