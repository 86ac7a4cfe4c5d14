// Time of kernels that pass once over their data: norms, rotation, activations, copies, sampling.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

KernelTime elementwise_time(const Elementwise& op, const Device& device);

}  // namespace engine
