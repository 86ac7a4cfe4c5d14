// Time of copies: inside the device's memory, and between it and the host's.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

KernelTime copy_time(const Copy& op, const Device& device,
                     const Calibration* calibration = nullptr);

}  // namespace engine
