#include "engine/kernels/elementwise.h"

#include <algorithm>
#include <array>

#include "engine/base/check.h"
#include "engine/kernels/form.h"
#include "engine/kernels/kernel_models.h"
#include "engine/kernels/traffic.h"

namespace engine {

Coordinates pass_coordinates(const Elementwise& op) {
  const double bytes = op.cold_bytes + op.resident_bytes;
  return coordinates(op.rows, bytes / op.rows, bytes > 0 ? op.cold_bytes / bytes : 0);
}

KernelTime time_of(const Elementwise& op, const KernelContext& context) {
  return elementwise_time(op, context.device, context.family, context.calibration);
}

Coordinates shape_of(const Elementwise& op, Family) { return pass_coordinates(op); }

OwnSlot slot_of(const Elementwise&, const SlotContext& context) {
  return pass_slot(pass_of(context.family), context);
}

OwnSlot pass_slot(Pass pass, const SlotContext& context) {
  auto& sets = context.calibration.pass[static_cast<std::size_t>(pass)];
  return slot_in(sets, sets, context);
}

// A pass is called as its family is.
Pass pass_of(Family family) {
  constexpr std::size_t none = enum_names(Pass{}).size();
  static constexpr auto passes = [] {
    std::array<std::size_t, enum_names(Family{}).size()> found{};
    const auto names = enum_names(Pass{});
    for (std::size_t i = 0; i < found.size(); ++i) {
      const auto place = std::ranges::find(names, enum_names(Family{})[i]);
      found[i] = std::size_t(place - names.begin());
    }
    return found;
  }();
  const std::size_t pass = passes[static_cast<std::size_t>(family)];
  check(pass != none, "an elementwise op belongs to a family of passes");
  return static_cast<Pass>(pass);
}

namespace {

KernelTime fitted_pass(const Elementwise& op, const Device& device, const FittedSet<PassFit>& set,
                       ParameterSet chosen) {
  const double bytes = op.cold_bytes + op.resident_bytes;
  const DeviceRates rates = device_rates(device);
  const PassFit& fit = set.fit;
  const double memory_rate = rates.bandwidth * fit.memory_share;
  // The cache delivers to each multiprocessor, but never more than its own peak, nor less than memory.
  const double processors = fit.cache_rate * 64e3 * rates.processors * rates.clock;
  const double cache_rate = std::max(memory_rate, std::min(processors, rates.cache_rate));
  const double held = held_share_6(bytes, fit.cache_share * rates.cache);
  // A row is one block's; of more rows than the multiprocessors hold, some wait for their turn.
  constexpr double rows_held = 2;
  const double turns = std::max(1.0, op.rows / (rows_held * rates.processors));
  const double blocks = turns * fit.row_clocks / rates.clock * bytes / op.rows / 1024;
  constexpr double first_bytes = 4096;
  const double latency = fit.cold_start * op.cold_bytes / (op.cold_bytes + first_bytes);
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
  form.time = form.launch + overlapped(form.compute, form.memory + form.l2, fit.overlap_power);
  return fitted_time(form, Flops{op.flops}, Bytes{bytes}, set, chosen, pass_coordinates(op));
}

}  // namespace

KernelTime elementwise_time(const Elementwise& op, const Device& device, Family family,
                            const Calibration* calibration) {
  if (calibration != nullptr) {
    const ParameterSet chosen = choose_set(device);
    const auto& own = calibration->pass[static_cast<std::size_t>(pass_of(family))];
    // What no table measures (residual, cache writes, routing) is like an activation: one plain pass.
    const auto& sets = own.any() ? own : calibration->pass[static_cast<std::size_t>(Pass::act)];
    if (const auto* set = find_set(sets, chosen)) return fitted_pass(op, device, *set, chosen);
  }
  return counted_time(
      {.flops = op.flops, .cold_bytes = op.cold_bytes, .resident_bytes = op.resident_bytes},
      device);
}

}  // namespace engine
