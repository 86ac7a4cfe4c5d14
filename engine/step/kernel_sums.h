// Time, launches and savings of some kernels of a step, as plain seconds: what tables of step times add up.
#pragma once

#include <array>

#include "engine/step/step_time.h"

namespace engine {

struct KernelSums {
  double time = 0;
  double launches = 0;
  Savings saved;

  void add(const KernelSums& other, double times = 1) {
    add_time(other, times);
    saved.add(other.saved, times);
  }
  // The same where what would be saved is not asked for.
  void add_time(const KernelSums& other, double times = 1) {
    time += other.time * times;
    launches += other.launches * times;
  }
};
inline KernelSums sums_of(const DeviceTime& device) {
  return {.time = device.total().value, .launches = device.launches(), .saved = device.saved()};
}

using ByPhase = std::array<double, kServedPhases>;

}  // namespace engine
