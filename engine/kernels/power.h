// The power limit: under unbroken load a kernel that would draw more runs at a lower clock.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"

namespace engine {

// Makes of a kernel in a short burst, which may exceed the limit and which is what tables measure, one in a machine that
// is never idle, and returns what the device draws meanwhile. The kernel stays as it is, and the energy is zero, where
// the device does not say what it draws. In place: this is the innermost loop. `at_rated`: the same kernel at the clock that powers
// are stated for; nullptr: the device is set to that.
Joules sustain(KernelTime& kernel, const Op& op, const Device& device,
               const KernelTime* at_rated = nullptr);

// A kernel among others that run at one clock: the part of its time that grows as the clock falls, and what it draws at the
// full clock, its multiprocessors being busy as long as it runs. Zero where the device does not say what it draws.
struct FullClock {
  Seconds arithmetic;
  Joules energy;
};
FullClock at_full_clock(const KernelTime& kernel, const Op& op, const Device& device);

// What of that goes to memory, whatever the clock.
Joules drawn_by_memory(Bytes bytes, const Device& device);

// What traffic takes at least at the present clock, which the cache has: memory has a clock of its own.
Seconds on_chip_time(Bytes bytes, const Device& device);
// The same at the clock that peaks and powers are stated for.
Seconds rated_on_chip_time(Bytes bytes, const Device& device);

// Peak of the matrix units in the format that an op computes in; 0: it does not use them.
FlopsPerSecond matrix_peak_of(const Op& op, const Device& device);

// Kernels one after another at the clock that powers are stated for, and what passes between them.
struct ClockedWork {
  Seconds arithmetic;
  Seconds other;    // of the same kernels: no longer at a lower clock
  Seconds at_rest;  // the device waits
  Joules energy;    // of the kernels
  Joules memory;    // of that: by memory
  Seconds
      on_chip;  // least of the kernels: of each its arithmetic, or its traffic through the cache
};
// The clock that a device is set to, over the one that powers are stated for, where it is lower. Of a higher one passes draw by the
// stated powers, so that none is slower by it.
double scale_below_rated(const Device& device);

// How many times longer than at the clock that the device is set to arithmetic takes, and what kernels take at least, at the clock at
// which all of it together draws no more than the limit; 1: the clock that the device is set to.
double clock_slowdown(const ClockedWork& work, const Device& device);

// Whether a device says what its kernels draw.
inline bool states_power(const Device& device) {
  return device.tensor_power.value > 0 && device.power_limit.value > 0;
}

// Drawn while the device waits for its host or for other devices; zero where it does not say what its kernels draw.
Watts power_at_rest(const Device& device);

// A device's file states powers for the clock of its peaks. Set to `scale` times that one, its processor draws by the square of it, above
// what the board draws at rest.
Joules at_clock(double scale, Joules by_processor, Seconds time, const Device& device);

}  // namespace engine
