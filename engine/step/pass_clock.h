// One clock for all kernels of a pass: what they draw together, over the time that the pass takes, is held to the board's limit.
#pragma once

#include <initializer_list>

#include "engine/hardware/device.h"
#include "engine/step/step_time.h"

namespace engine {

// How many times slower than the clock that the device is set to it leaves `parts`, which were timed at that clock (PowerLimit::passes);
// the device waits for collectives, and `idle` between kernels. `hungrier`: how many times as much as the mean the device draws, but for
// its memory.
double pass_slowdown(std::initializer_list<const DeviceTime*> parts, Seconds idle,
                     const Device& device, double hungrier = 1);

// Makes of kernels at the clock that the device is set to those at a lower one.
void slow_down(double times, const Device& device, DeviceTime& part);
void slow_down(double times, const Device& device, KernelRow& row);

}  // namespace engine
