#include "engine/kernels/kernel_time.h"

#include "engine/kernels/grid/grid_model.h"
#include "engine/kernels/kernel_model.h"
#include "engine/kernels/kernel_models.h"

namespace engine {
namespace {

constexpr bool speaks_for_all(const Device&) { return true; }

constexpr KernelModel kModels[] = {
    {.name = "grid",
     .speaks = has_grid,
     .time = time_with_grid,
     .problem = grid_problem,
     .report = report_grid},
    {.name = "gpu", .speaks = speaks_for_all, .time = gpu_time},
};

}  // namespace

std::span<const KernelModel> kernel_models() { return kModels; }

const KernelModel& kernel_model(const Device& device) {
  const KernelModel* model = kModels;
  while (!model->speaks(device)) ++model;
  return *model;
}

// A new alternative of Op does not compile until kernel_models.h has its time.
KernelTime gpu_time(Family family, const Op& op, const Device& device,
                    const Calibration* calibration) {
  const KernelContext context{family, device, calibration};
  return std::visit([&context](const auto& call) { return time_of(call, context); }, op);
}

KernelTime kernel_time(Family family, const Op& op, const Device& device,
                       const Calibration* calibration) {
  return kernel_model(device).time(family, op, device, calibration);
}

Coordinates coordinates_of(Family family, const Op& op) {
  return std::visit([family](const auto& call) { return shape_of(call, family); }, op);
}

}  // namespace engine
