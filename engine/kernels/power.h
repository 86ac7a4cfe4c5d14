// The power limit: under unbroken load a kernel that would draw more runs at a lower clock.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"

namespace engine {

// The kernel in a machine that is never idle; kernel tables measure short bursts, which may exceed the limit.
// The same as in a burst where the device does not say what it draws.
KernelTime sustained(KernelTime kernel, const Op& op, const Device& device);

}  // namespace engine
