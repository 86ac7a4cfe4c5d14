#include "engine/tasks/serve/report_mechanisms.h"

#include <algorithm>
#include <utility>

#include "engine/kernels/power.h"

namespace engine {

double replica_seconds(const ServingSim& sim, const PoolSetup& pool, std::size_t index) {
  const Scaler& scaler = sim.scaler(index);
  if (scaler.follows_load()) return scaler.on_seconds(sim.makespan());
  return (sim.stats().pool(index).busy + sim.idle_seconds(index)) /
         double(pool.context.shard.parallel.pp);
}

void report_answers(const Scenario& scenario, const ServingSim& sim, Metrics& metrics) {
  const MeasuredSums& measured = sim.stats().measured();
  if (scenario.load.samples == 1 || measured.requests <= 0) return;
  metrics.answer_tokens = measured.outputs / measured.requests;
}

void report_adapters(const Scenario& scenario, const ServingSim& sim, Metrics& metrics) {
  if (scenario.load.adapters == 0) return;
  const PoolSums& sums = sim.stats().pool(0);
  const double missed = sums.adapters_asked - sums.adapters_there;
  metrics.adapter_hit_rate = sums.adapters_asked > 0 ? 1 - missed / sums.adapters_asked : 1;
  if (missed > 0) metrics.adapter_load = Seconds{sums.adapter_wait / missed};
  if (sums.steps > 0) metrics.adapters_per_step = sums.adapter_steps / sums.steps;
}

void add_image_rows(const ServePools& pools, const ServingSim& sim, Outcome& outcome) {
  if (!pools.encoder()) return;
  const double times = sim.encoders().encoded() + sim.stats().summary().encoded;
  Breakdown sums;
  for (const KernelRow& row : pools.encoder()->rows) sums.add(row, times);
  for (const KernelRow& row : std::move(sums).take()) outcome.kernels.push_back(row);
}

void report_images(const ServePools& pools, const ServingSim& sim, Metrics& metrics) {
  if (!pools.encoder()) return;
  const Encoders& apart = sim.encoders();
  if (apart.any()) {
    if (apart.encoded() > 0) metrics.encode = Seconds{apart.waited() / apart.encoded()};
    const double replicas = double(pools.encoder()->apart.replicas);
    if (sim.makespan() > 0) {
      // A run that is ended early has images in its queues.
      metrics.encode_utilization = std::min(1.0, apart.busy() / (replicas * sim.makespan()));
    }
    return;
  }
  const PoolSums& readers = sim.stats().pool(pools.pools().size() - 1);
  if (readers.busy > 0) {
    metrics.encode_share = readers.encoded * pools.encoder()->time.value / readers.busy;
  }
}

void report_energy(const ServePools& pools, ServingSim& sim, Outcome& outcome) {
  // What a draft or an encoder on devices of its own draws at rest is in no row.
  if (pools.drafts_apart() || pools.encoder()) return;
  Joules energy;
  for (std::size_t i = 0; i < pools.pools().size(); ++i) {
    const PoolSetup& pool = pools.pools()[i];
    if (!states_power(pool.context.device)) return;
    const Parallelism& layout = pool.context.shard.parallel;
    Joules of_one;
    for (const KernelRow& row : outcome.kernels) {
      const bool of_draft = row.role == DeploymentRole::draft && i == 0;
      if (row.role == pool.role || of_draft) of_one += row.work.energy;
    }
    // Of all stages of a pipeline: rows are of each in turn, and it has as many lanes that wait as stages. Replicas that
    // are off draw nothing.
    const double on = replica_seconds(sim, pool, i) * double(layout.pp);
    const Seconds idle{std::max(0.0, on - sim.stats().pool(i).busy)};
    const double devices_of_stage = double(layout.devices_of_replica() / layout.pp);
    energy += (of_one + power_at_rest(pool.context.device) * idle) * devices_of_stage;
  }
  outcome.metrics.energy = energy;
  if (pools.main().clock.varies()) outcome.metrics.clock_mean = sim.table(0).clock_mean();
  const double tokens = sim.stats().summary().tokens_out;
  if (tokens > 0) outcome.metrics.energy_j_per_output_token = energy.value / tokens;
}

}  // namespace engine
