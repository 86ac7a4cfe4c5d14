// What a device drew as its file describes it, so that a device made from it draws what follows.
#pragma once

#include <cstdint>

#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

// Powers of a device's file, and what of it they hold for. A power that a sweep states itself is not here (0): it holds as it is.
struct RatedPowers {
  std::int64_t multiprocessors = 0;
  FlopsPerSecond peak;  // in 16 bits, of all multiprocessors at the rated clock
  BytesPerSecond memory_bandwidth;
  Watts idle;
  Watts busy;  // above idle
  Watts tensor;
  Watts memory;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    constexpr Range kept{.low = 0, .in_key = false, .raising = Raising::either};
    visit("multiprocessors", self.multiprocessors,
          "multiprocessors that the powers of the device's file hold for", kept);
    visit("peak", self.peak, "peak in 16 bits that the powers of the device's file hold for", kept);
    visit("memory_bandwidth", self.memory_bandwidth,
          "bandwidth that the powers of the device's file hold for; 0: no file states them, and "
          "nothing follows",
          kept);
    visit("idle", self.idle, "device.idle_power of the file; 0: the sweep states its own", kept);
    visit("busy", self.busy,
          "device.busy_power of the file, above idle_power; 0: the sweep states its own", kept);
    visit("tensor", self.tensor, "device.tensor_power of the file; 0: the sweep states its own",
          kept);
    visit("memory", self.memory, "device.memory_power of the file; 0: the sweep states its own",
          kept);
  }

  // Where powers come from is no part of what a device is: those that draw alike are alike.
  bool operator==(const RatedPowers&) const { return true; }
};

}  // namespace engine
