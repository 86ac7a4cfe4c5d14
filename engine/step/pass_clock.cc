#include "engine/step/pass_clock.h"

#include <algorithm>

#include "engine/kernels/power.h"

namespace engine {
namespace {

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
  work.time += longer;
  work.energy =
      memory + std::max((work.energy - memory) / times, power_at_rest(device) * work.time);
  work.saved[Bound::compute] += by_arithmetic;
  work.saved[Bound::memory] += longer - by_arithmetic;
}

}  // namespace

double pass_slowdown(std::initializer_list<const DeviceTime*> parts, Seconds idle,
                     const Device& device, double hungrier) {
  ClockedWork sum{.at_rest = idle};
  for (const DeviceTime* part : parts) {
    for (const Work* work : {&part->compute, &part->attention}) {
      sum.arithmetic += work->arithmetic;
      sum.other += std::max(Seconds{0}, work->time - work->arithmetic);
      sum.energy += work->energy;
      sum.memory += drawn_by_memory(work->bytes, device);
      sum.on_chip += std::max(work->arithmetic, on_chip_time(work->bytes, device));
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

// The limit goes by the stated powers, so that no higher clock is slower; nor does one draw more than they say, since a pass that is held
// to the limit draws just that.
void slow_down(double times, const Device& device, KernelRow& row) {
  if (row.bound == Bound::network) return;
  Work& work = row.work;
  slow_work_down(times, device, work);
  if (!states_power(device)) return;
  const Joules memory = drawn_by_memory(work.bytes, device);
  const double scale = std::min(1.0, device.on_chip_scale());
  work.energy = memory + at_clock(scale, work.energy - memory, work.time, device);
}

}  // namespace engine
