// The power limit: under unbroken load a kernel that would draw more runs at a lower clock.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"

namespace engine {

// Makes of a kernel in a short burst, which may exceed the limit and which is what tables measure, one in a machine that
// is never idle. It stays as it is where the device does not say what it draws. In place: this is the innermost loop.
void sustain(KernelTime& kernel, const Op& op, const Device& device);

}  // namespace engine
