// Time of kernels that pass once over their data: norms, rotation, activations, copies, sampling.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "engine/model/op.h"

namespace engine {

KernelTime elementwise_time(const Elementwise& op, const Device& device,
                            Family family = Family::act, const Calibration* calibration = nullptr);

Coordinates pass_coordinates(const Elementwise& op);

// The parameters a family of passes uses, and where its measured calls are kept.
Pass pass_of(Family family);
OwnSlot pass_slot(Pass pass, const SlotContext& context);

}  // namespace engine
