#include "engine/kernels/elementwise.h"

#include "engine/base/check.h"
#include "engine/kernels/form.h"
#include "engine/kernels/traffic.h"

namespace engine {

Coordinates pass_coordinates(const Elementwise& op) {
  const double bytes = op.cold_bytes + op.resident_bytes;
  return coordinates(op.rows, bytes / op.rows, bytes > 0 ? op.cold_bytes / bytes : 0);
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
    case Family::quantize:
      return Pass::quantize;
    default:
      check(false, "an elementwise op belongs to a family of passes");
      return Pass::copy;
  }
}

namespace {

KernelTime fitted_pass(const Elementwise& op, const Device& device, const FittedSet<PassFit>& set,
                       ParameterSet chosen) {
  const double bytes = op.cold_bytes + op.resident_bytes;
  const DeviceRates rates = device_rates(device);
  const PassFit& fit = set.fit;
  const double memory_rate = rates.bandwidth * fit.eta;
  // The cache delivers to each multiprocessor, but never more than its own peak, nor less than memory.
  const double processors = fit.cl2 * 64e3 * rates.processors * rates.clock;
  const double cache_rate = std::max(memory_rate, std::min(processors, rates.cache_rate));
  const double held = held_share_6(bytes, fit.l2c * rates.cache);
  // A row is one block's; of more rows than the multiprocessors hold, some wait for their turn.
  constexpr double rows_held = 2;
  const double turns = std::max(1.0, op.rows / (rows_held * rates.processors));
  const double blocks = turns * fit.cr / rates.clock * bytes / op.rows / 1024;
  constexpr double first_bytes = 4096;
  const double latency = fit.lc * op.cold_bytes / (op.cold_bytes + first_bytes);
  FormTime form;
  form.memory = (op.cold_bytes + op.resident_bytes * (1 - held)) / memory_rate;
  form.l2 = op.resident_bytes * held / cache_rate;
  // Floors of passes are below a product's, so another device's is in proportion, not so much less.
  const double slower = set.launch > 0 ? rates.launch / set.launch : 1;
  form.launch = fit.floor * slower + latency;
  if (device.vector_peak.value > 0) {
    form.compute = op.flops / (device.vector_peak.value * device.on_chip_scale()) * 1e6;
  }
  form.least = std::max(op.cold_bytes / rates.bandwidth, form.compute);
  // Rows that wait for their turn wait for latencies.
  form.arithmetic_share = form.compute < blocks ? 0 : 1;
  form.compute = std::max(form.compute, blocks);
  form.time = form.launch + overlapped(form.compute, form.memory + form.l2, fit.pn);
  return fitted_time(form, Flops{op.flops}, Bytes{bytes}, set, chosen, pass_coordinates(op));
}

}  // namespace

KernelTime elementwise_time(const Elementwise& op, const Device& device, Family family,
                            const Calibration* calibration) {
  if (calibration != nullptr) {
    const ParameterSet chosen = choose_set(device);
    const auto& own = calibration->pass[static_cast<std::size_t>(pass_of(family))];
    // What no table measures (residual, cache writes, routing) is like an activation: one plain pass.
    const auto& sets = speaks(own) ? own : calibration->pass[static_cast<std::size_t>(Pass::act)];
    if (const auto* set = find_set(sets, chosen)) return fitted_pass(op, device, *set, chosen);
  }
  const TrafficTime traffic = traffic_time(device, op.cold_bytes, op.resident_bytes);
  KernelTime time{.memory = traffic.memory,
                  .l2 = traffic.l2,
                  .launch = device.launch_latency,
                  .flops = Flops{op.flops},
                  .bytes = Bytes{op.cold_bytes + op.resident_bytes}};
  // A device file without a vector rate is charged for traffic only.
  const FlopsPerSecond peak = device.vector_peak * device.on_chip_scale();
  if (peak.value > 0) time.compute = time.flops / peak;
  return roofline_time(time, op.cold_bytes, peak, device);
}

}  // namespace engine
