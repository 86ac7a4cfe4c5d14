#include "engine/kernels/traffic.h"

#include <algorithm>

namespace engine {

TrafficTime traffic_time(const Device& device, double cold, double resident) {
  const double memory_rate = device.memory_bandwidth.value;
  const double l2_rate = cache_rate(device).value;
  const double held = std::min(resident, device.l2_capacity.value);
  return {.memory = Seconds{(cold + resident - held) / memory_rate}, .l2 = Seconds{held / l2_rate}};
}

}  // namespace engine
