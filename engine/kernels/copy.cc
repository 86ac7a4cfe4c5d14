#include "engine/kernels/copy.h"

#include <algorithm>

#include "engine/kernels/elementwise.h"
#include "engine/kernels/form.h"
#include "engine/kernels/kernel_models.h"

namespace engine {
namespace {

Direction direction_of(const Copy& op) {
  return op.path == CopyPath::host_to_device ? Direction::host_to_device
                                             : Direction::device_to_host;
}

const FittedSet<CopyFit>* copies_set(Direction direction, const Device& device,
                                     const Calibration* calibration) {
  if (calibration == nullptr) return nullptr;
  return find_set(calibration->copy[static_cast<std::size_t>(direction)], choose_set(device));
}

// What a copy takes however small it is, in microseconds: what was measured, and nothing is there before it has crossed the link.
double start_of(const CopyFit& fit, Seconds latency) {
  return std::max(fit.floor, latency.value * 1e6);
}

// Over the host link: a start and the link's rate.
KernelTime host_copy_time(const Copy& op, const Device& device, const Calibration* calibration) {
  const double rate = device.host_link.bandwidth.value / 1e6;
  const double least = rate > 0 ? op.bytes / rate : 0;
  if (const auto* set = copies_set(direction_of(op), device, calibration)) {
    FormTime form;
    form.memory = least / set->fit.link_share;
    form.launch = start_of(set->fit, device.host_link.latency);
    form.time = form.launch + form.memory;
    form.least = least;
    return fitted_time(form, Flops{0}, Bytes{op.bytes}, *set, choose_set(device),
                       coordinates(op.bytes));
  }
  KernelTime time{.memory = Seconds{least * 1e-6},
                  .launch = device.launch_latency + device.host_link.latency,
                  .bytes = Bytes{op.bytes}};
  time.time = time.launch + time.memory;
  time.least = time.memory;
  time.saved[Bound::memory] = time.memory;
  time.saved[Bound::launch] = time.launch;
  return time;
}

}  // namespace

KernelTime time_of(const Copy& op, const KernelContext& context) {
  return copy_time(op, context.device, context.calibration);
}

Coordinates shape_of(const Copy& op, Family) {
  return op.path == CopyPath::device ? coordinates(1, 2 * op.bytes, 0) : coordinates(op.bytes);
}

OwnSlot slot_of(const Copy& op, const SlotContext& context) {
  if (op.path == CopyPath::device) return pass_slot(Pass::copy, context);
  auto& sets = context.calibration.copy[static_cast<std::size_t>(direction_of(op))];
  return slot_in(sets, sets, context);
}

KernelTime copy_time(const Copy& op, const Device& device, const Calibration* calibration) {
  if (op.path != CopyPath::device) return host_copy_time(op, device, calibration);
  // Read once, written once.
  return elementwise_time({.rows = 1, .resident_bytes = 2 * op.bytes}, device, Family::copy,
                          calibration);
}

MessageLine copies_over(const LinkRates& link, const Device& device,
                        const Calibration* calibration) {
  const auto* set = copies_set(Direction::host_to_device, device, calibration);
  if (set == nullptr) return {device.launch_latency + link.latency, 1 / link.bandwidth.value};
  return {Seconds{start_of(set->fit, link.latency) * 1e-6},
          1 / (link.bandwidth.value * set->fit.link_share)};
}

}  // namespace engine
