#include "engine/kernels/traffic.h"

#include <algorithm>

namespace engine {

TrafficTime traffic_time(const Device& device, double cold, double resident) {
  const double memory_rate = device.memory_bandwidth.value;
  // A device file may not know its cache; then everything travels. A cache is never slower than
  // memory, whatever a sweep sets.
  const double l2_rate = std::max(memory_rate, device.l2_bandwidth.value * device.on_chip_scale());
  const double held = std::min(resident, device.l2_capacity.value);
  return {.memory = Seconds{(cold + resident - held) / memory_rate}, .l2 = Seconds{held / l2_rate}};
}

}  // namespace engine
