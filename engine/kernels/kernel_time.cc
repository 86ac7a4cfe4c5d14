#include "engine/kernels/kernel_time.h"

#include "engine/kernels/array.h"
#include "engine/kernels/kernel_models.h"

namespace engine {

// A new alternative of Op does not compile until kernel_models.h has its time.
KernelTime kernel_time(Family family, const Op& op, const Device& device,
                       const Calibration* calibration) {
  if (device.array.on()) [[unlikely]] {
    if (const auto call = array_call(op, device)) return array_time(*call, device);
  }
  const KernelContext context{family, device, calibration};
  return std::visit([&context](const auto& call) { return time_of(call, context); }, op);
}

Coordinates coordinates_of(Family family, const Op& op) {
  return std::visit([family](const auto& call) { return shape_of(call, family); }, op);
}

}  // namespace engine
