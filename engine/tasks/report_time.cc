#include "engine/tasks/report_time.h"

#include "engine/kernels/peak_in_use.h"
#include "engine/tasks/report_price.h"

namespace engine {

void report_time(const Scenario& scenario, const StepTime& time, const TokenCounts& tokens,
                 Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  const Seconds total = time.total();
  // Replicas work side by side, and a pipeline has several batches in flight.
  const double copies = double(scenario.parallel.dp) * tokens.in_flight;
  metrics.compute_time = time.device.compute.exposed();
  metrics.attention_time = time.device.attention.exposed();
  metrics.communication_time = time.device.communication.exposed();
  metrics.gap_time = time.host.gap;
  metrics.host_time = time.host.launch + time.host.between;
  if (time.neighbour.value > 0) metrics.sharing_time = time.neighbour;
  metrics.output = TokensPerSecond{tokens.generated * copies / total.value};
  metrics.total = TokensPerSecond{tokens.all * copies / total.value};
  metrics.per_device = metrics.total / metrics.devices;
  // The kernels of the stages in turn add up to one device's work over the pipeline's latency, where a batch is in each.
  const double full = tokens.in_flight / double(scenario.parallel.pp);
  const FlopsPerSecond peak = peak_in_use(scenario.device, scenario.quant);
  metrics.model_flops_utilization = full * (time.device.flops() / total / peak);
  metrics.memory_bandwidth_utilization =
      full * (time.device.memory_bytes() / total / scenario.device.memory_bandwidth);
  report_price(scenario, TokensPerSecond{tokens.prompt * copies / total.value}, metrics);
  outcome.bound = time.saved.largest();
  outcome.tier = time.device.tier;
  outcome.extrapolated = time.device.extrapolated;
}

void report_shared_work(std::span<const DeploymentWork> work, const SharedTime& time,
                        Metrics& metrics) {
  Flops flops;
  Bytes bytes;
  FlopsPerSecond peak;
  BytesPerSecond bandwidth;
  for (const auto& [on, done, guest] : work) {
    const double devices = double(on.parallel.devices());
    const double working = time.in_flight * devices / double(on.parallel.pp);
    flops += done.flops() * working;
    bytes += done.memory_bytes() * working;
    if (guest) continue;
    peak += peak_in_use(on.device, on.quant) * devices;
    bandwidth += on.device.memory_bandwidth * devices;
  }
  metrics.model_flops_utilization = flops / time.total / peak;
  metrics.memory_bandwidth_utilization = bytes / time.total / bandwidth;
}

}  // namespace engine
