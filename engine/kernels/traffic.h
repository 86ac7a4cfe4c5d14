// How long data takes to move through the levels of a device's memory.
#pragma once

#include <algorithm>

#include "engine/base/units.h"
#include "engine/hardware/device.h"

namespace engine {

// A device file may not know its cache; then everything travels. A cache is never slower than memory, whatever a sweep sets.
inline BytesPerSecond cache_rate(const Device& device) {
  return std::max(device.memory_bandwidth, device.l2_bandwidth * device.on_chip_scale());
}

struct TrafficTime {
  Seconds memory;
  Seconds l2;
};

// `cold` bytes come from or go to memory. `resident` bytes were just written by the kernel before:
// as many as the cache holds are found there, the rest travel. Continuous and never falling in
// either argument.
TrafficTime traffic_time(const Device& device, double cold, double resident);

}  // namespace engine
