// Whose processor is it? GPUs are timed by fitted forms; a chip that is described by its parts is timed by what these do. A new kind of
// chip has its settings in engine/hardware (a member of Device), a folder beside this file, and its row in kernel_time.cc.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "engine/base/refusal.h"
#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "engine/kernels/chip_figures.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/model_ops.h"
#include "engine/model/op.h"
#include "engine/model/parallelism.h"

namespace engine {

struct KernelModel {
  std::string_view name;
  bool (*speaks)(const Device& device);
  KernelTime (*time)(Family family, const Op& op, const Device& device,
                     const Calibration* calibration);
  // What of a device's description contradicts itself, or nothing; asked of every device. Null: nothing can.
  std::optional<Refusal> (*problem)(const Device& device, const Quantization& quant) = nullptr;
  // What the operations of a step take on one such chip; null: nothing is known beside their times.
  void (*report)(const OpList& ops, const Device& device, ChipFigures& figures) = nullptr;
};

// In the order in which they are asked; the last one, of GPUs, speaks for any device.
std::span<const KernelModel> kernel_models();
const KernelModel& kernel_model(const Device& device);

// A call on a GPU. Other models hand on what a chip of theirs does as a GPU does it (passes, copies).
KernelTime gpu_time(Family family, const Op& op, const Device& device,
                    const Calibration* calibration);

}  // namespace engine
