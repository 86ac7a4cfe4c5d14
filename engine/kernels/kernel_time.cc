#include "engine/kernels/kernel_time.h"

#include "engine/kernels/array.h"
#include "engine/kernels/kernel_models.h"

namespace engine {

namespace {

// A new alternative of Op does not compile until kernel_models.h has its time.
KernelTime time_by_model(Family family, const Op& op, const Device& device,
                         const Calibration* calibration) {
  const KernelContext context{family, device, calibration};
  return std::visit([&context](const auto& call) { return time_of(call, context); }, op);
}

// Apart, so that devices without grids pay for a comparison alone.
[[gnu::noinline]] KernelTime time_beside_grids(Family family, const Op& op, const Device& device,
                                               const Calibration* calibration) {
  if (const auto call = array_call(op, device)) return array_time(*call, device);
  return time_by_model(family, op, device, calibration);
}

}  // namespace

KernelTime kernel_time(Family family, const Op& op, const Device& device,
                       const Calibration* calibration) {
  if (device.array.on()) [[unlikely]] {
    return time_beside_grids(family, op, device, calibration);
  }
  return time_by_model(family, op, device, calibration);
}

Coordinates coordinates_of(Family family, const Op& op) {
  return std::visit([family](const auto& call) { return shape_of(call, family); }, op);
}

}  // namespace engine
