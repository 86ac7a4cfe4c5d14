#include "engine/step/pass_clock.h"

#include <algorithm>

#include "engine/kernels/power.h"

namespace engine {
namespace {

// What a processor draws at the clock that powers are stated for. `drawn`: by the stated powers, for as long as kernels take at the clock
// that the device is set to, if that is lower.
Joules at_rated_clock(const Work& work, Joules drawn, const Device& device) {
  const double scale = scale_below_rated(device);
  if (scale == 1) return drawn;
  const Joules waiting =
      std::min(drawn, device.busy_power * std::max(Seconds{0}, work.time - work.arithmetic));
  return waiting + (drawn - waiting) * scale;
}

void slow_work_down(double times, const Device& device, Work& work) {
  if (times <= 1 || work.time.value <= 0) return;
  const Seconds by_arithmetic = work.arithmetic * (times - 1);
  const Seconds by_traffic = on_chip_time(work.bytes, device) * times - work.time;
  const Seconds longer = std::max(by_arithmetic, by_traffic);
  const Seconds exposed = work.exposed();
  if (exposed.value > 0) {
    work.low += longer * (work.low / exposed);
    work.high += longer * (work.high / exposed);
  }
  const Joules memory = drawn_by_memory(work.bytes, device);
  const Joules rated = at_rated_clock(work, work.energy - memory, device);
  const double lower = times / scale_below_rated(device);
  work.time += longer;
  work.energy = memory + std::max(rated / lower, power_at_rest(device) * work.time);
  work.saved[Bound::compute] += by_arithmetic;
  work.saved[Bound::memory] += longer - by_arithmetic;
}

}  // namespace

double pass_slowdown(std::initializer_list<const DeviceTime*> parts, Seconds idle,
                     const Device& device, double hungrier) {
  const double scale = scale_below_rated(device);
  ClockedWork sum{.at_rest = idle};
  for (const DeviceTime* part : parts) {
    for (const Work* work : {&part->compute, &part->attention}) {
      const Joules memory = drawn_by_memory(work->bytes, device);
      sum.arithmetic += work->arithmetic * scale;
      sum.other += std::max(Seconds{0}, work->time - work->arithmetic);
      sum.energy += memory + at_rated_clock(*work, work->energy - memory, device);
      sum.memory += memory;
      sum.on_chip += std::max(work->arithmetic, on_chip_time(work->bytes, device)) * scale;
    }
    sum.at_rest += part->communication.exposed();
  }
  sum.energy += (sum.energy - sum.memory) * (hungrier - 1);
  return clock_slowdown(sum, device);
}

void slow_down(double times, const Device& device, DeviceTime& part) {
  slow_work_down(times, device, part.compute);
  slow_work_down(times, device, part.attention);
}

// The limit picks a clock by itself, so what it leaves a pass follows from the clock that powers are stated for, where the device is set to
// a lower one. Where it leaves that one, kernels draw by the square of it.
void slow_down(double times, const Device& device, KernelRow& row) {
  if (row.bound == Bound::network) return;
  Work& work = row.work;
  slow_work_down(times, device, work);
  const double scale = scale_below_rated(device);
  if (!states_power(device) || times > 1 || scale == 1) return;
  const Joules memory = drawn_by_memory(work.bytes, device);
  const Joules drawn = memory + at_clock(scale, work.energy - memory, work.time, device);
  work.energy = std::min(drawn, device.power_limit * work.time);
}

}  // namespace engine
