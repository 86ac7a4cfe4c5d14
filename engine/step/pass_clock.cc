#include "engine/step/pass_clock.h"

#include <algorithm>

#include "engine/kernels/power.h"

namespace engine {
namespace {

// What is neither drawn at rest nor known to go elsewhere.
Joules by_products(const Work& work, const Device& device) {
  const Joules at_rest = rest_while_busy(device) * work.exposed();
  return std::max(Joules{0}, work.energy - work.by_busy - work.by_memory - at_rest);
}

void slow_work_down(double times, const Device& device, Work& work) {
  if (times <= 1 || work.time.value <= 0) return;
  const Seconds by_clock = work.clocked * (times - 1);
  const Seconds by_traffic = on_chip_time(work.bytes, device) * times - work.time;
  const Seconds longer = std::max(by_clock, by_traffic);
  const Seconds exposed = work.exposed();
  if (exposed.value > 0) {
    work.low += longer * (work.low / exposed);
    work.high += longer * (work.high / exposed);
  }
  const Joules products = by_products(work, device);
  work.by_busy *= (1 + longer / work.time) / (times * times);
  work.by_memory *= 1 / (times * times);
  work.time += longer;
  work.limited += longer;
  work.clocked *= times;
  work.energy = rest_while_busy(device) * work.exposed() + work.by_busy + products * (1 / times) +
                work.by_memory;
  work.saved[Bound::compute] += by_clock;
  work.saved[Bound::memory] += longer - by_clock;
}

}  // namespace

double pass_slowdown(std::initializer_list<const DeviceTime*> parts, Seconds idle,
                     const Device& device, double hungrier) {
  ClockedWork sum{.at_rest = idle};
  for (const DeviceTime* part : parts) {
    for (const Work* work : {&part->compute, &part->attention}) {
      sum.time += work->exposed();
      sum.clocked += work->clocked;
      sum.on_chip += std::max(work->clocked, on_chip_time(work->bytes, device));
      sum.busy += work->by_busy;
      sum.products += by_products(*work, device);
      sum.memory += work->by_memory;
    }
    sum.at_rest += part->communication.exposed();
  }
  const double lower = device.on_chip_scale() * device.on_chip_scale();
  sum.busy = sum.busy * hungrier + rest_while_busy(device) * sum.time * ((hungrier - 1) * lower);
  sum.products *= hungrier;
  return clock_slowdown(sum, device);
}

void slow_down(double times, const Device& device, DeviceTime& part) {
  slow_work_down(times, device, part.compute);
  slow_work_down(times, device, part.attention);
}

void slow_down(double times, const Device& device, KernelRow& row) {
  if (row.bound != Bound::network) slow_work_down(times, device, row.work);
}

}  // namespace engine
