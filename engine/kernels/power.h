// The power limit: under unbroken load a kernel that would draw more runs at a lower clock.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"

namespace engine {

// Makes of a kernel in a short burst, which may exceed the limit and which is what tables measure, one in a machine that
// is never idle, and returns what the device draws meanwhile. The kernel stays as it is, and the energy is zero, where
// the device does not say what it draws. In place: this is the innermost loop.
Joules sustain(KernelTime& kernel, const Op& op, const Device& device);

// Whether a device says what its kernels draw.
inline bool states_power(const Device& device) {
  return device.tensor_power.value > 0 && device.power_limit.value > 0;
}

// Drawn while the device waits for its host or for other devices; zero where it does not say what its kernels draw.
Watts power_at_rest(const Device& device);

}  // namespace engine
