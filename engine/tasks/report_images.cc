#include "engine/tasks/report_images.h"

#include "engine/kernels/power.h"
#include "engine/step/interval.h"
#include "engine/tasks/report_time.h"

namespace engine {

void report_images(const Scenario& scenario, const StepTime& time, std::int64_t images,
                   Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  report_time(scenario, time, {}, outcome);
  // There are no tokens of text to count.
  metrics.output = metrics.total = metrics.per_device = TokensPerSecond{kNoValue};
  const Interval whole = interval_of(outcome.kernels);
  metrics.image_latency = time.total();
  metrics.image_latency_low = whole.low;
  metrics.image_latency_high = whole.high;
  metrics.images_per_s = double(images * scenario.parallel.dp) / time.total().value;
  metrics.price_usd_per_1000_images = metrics.rent.value / metrics.images_per_s * 1000;
  if (!states_power(scenario.device)) return;
  Joules energy;
  for (const KernelRow& row : outcome.kernels) energy += row.work.energy;
  const double devices = double(scenario.parallel.devices_of_replica());
  metrics.energy_j_per_image = energy.value * devices / double(images);
}

}  // namespace engine
