// What a device draws, and the clock that its power limit leaves: a kernel that would draw more runs at a lower one.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"

namespace engine {

// A kernel that can be timed at another clock.
class Reclocked {
 public:
  virtual ~Reclocked() = default;
  // `slower` differs in nothing but its clock from the device that the kernel runs on.
  virtual KernelTime on(const Device& slower) const = 0;
};

// What a kernel draws in the time it takes, at the clock that the device is set to; zero where the device does not say what it draws.
struct Drawn {
  Joules at_rest;  // what the board draws anyway
  Joules
      busy;  // by multiprocessors, above that: with the square of the clock, as long as they are busy
  Joules products;  // by matrix units: in proportion to the clock, for the same work
  Joules memory;    // by traffic: with the square of the clock, for the same bytes

  Joules total() const { return at_rest + busy + products + memory; }
};
Drawn drawn_by(const KernelTime& kernel, const Op& op, const Device& device);

// Makes of a kernel in a short burst, which may exceed the limit and which is what tables measure, one in a machine that is never idle: at
// the clock that the limit leaves it (`clock`, over the one that powers are stated for), timed as on a device that is set to that clock. A
// limit so picks a clock by itself, whatever higher one the device is set to. In place: this is the innermost loop.
struct Sustained {
  Joules energy;
  double clock = 1;
};
Sustained sustain(KernelTime& kernel, const Reclocked& again, const Op& op, const Device& device);

// What traffic takes at least at the present clock, which the cache has: memory has a clock of its own.
Seconds on_chip_time(Bytes bytes, const Device& device);

// The part of a kernel's time that is in proportion to 1 / clock: read off the same kernel at a lower clock, as near as limits leave it.
Seconds clocked_time(const KernelTime& kernel, const Reclocked& again, const Device& device);

// Peak of the matrix units in the format that an op computes in; 0: it does not use them.
FlopsPerSecond matrix_peak_of(const Op& op, const Device& device);

// Kernels one after another, at the clock that the device is set to, and what passes between them.
struct ClockedWork {
  Seconds time;     // of the kernels
  Seconds clocked;  // of that: in proportion to 1 / clock
  Seconds
      on_chip;  // least of the kernels: of each its clocked time, or its traffic through the cache
  Seconds at_rest;                // the device waits
  Joules busy, products, memory;  // as in Drawn
};

// How many times longer than at the clock that the device is set to `clocked` takes, and `on_chip`, at the clock at which all of it together
// draws no more than the limit; 1: the clock that the device is set to.
double clock_slowdown(const ClockedWork& work, const Device& device);

// Whether a device says what its kernels draw.
inline bool states_power(const Device& device) {
  return device.tensor_power.value > 0 && device.power_limit.value > 0;
}

// Drawn while the device waits for its host or for other devices; zero where it does not say what its kernels draw.
Watts power_at_rest(const Device& device);
// The same while a kernel runs: no more than what busy multiprocessors draw.
Watts rest_while_busy(const Device& device);

}  // namespace engine
