// Time of copies: inside the device's memory, and between it and the host's.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

KernelTime copy_time(const Copy& op, const Device& device,
                     const Calibration* calibration = nullptr);

// Copies to a device over the link to the host, of which copies reach what they were measured to reach.
MessageLine copies_over(const LinkRates& link, const Device& device,
                        const Calibration* calibration);

}  // namespace engine
