#include "engine/tasks/serve/report_mechanisms.h"

#include <algorithm>
#include <utility>
#include <vector>

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
  // Where prompts are read elsewhere, adapters are asked for there as well.
  double asked = 0, missed = 0, waited = 0;
  for (std::size_t i = 0; i < (scenario.prefill.present ? 2 : 1); ++i) {
    const PoolSums& pool = sim.stats().pool(i);
    asked += pool.adapters_asked;
    missed += pool.adapters_asked - pool.adapters_there;
    waited += pool.adapter_wait;
  }
  metrics.adapter_hit_rate = asked > 0 ? 1 - missed / asked : 1;
  if (missed > 0) metrics.adapter_load = Seconds{waited / missed};
  if (sums.steps > 0) metrics.adapters_per_step = sums.adapter_steps / sums.steps;
}

namespace {

// How often the images of 1, 2, ... requests were encoded together.
std::vector<double> encoded_batches(const ServePools& pools, const ServingSim& sim) {
  const Encoders& apart = sim.encoders();
  if (apart.any() && !apart.batches()) return {apart.encoded()};
  if (apart.any()) return {apart.together().begin(), apart.together().end()};
  return sim.stats().pool(pools.pools().size() - 1).encoded_together;
}

// Of replicas that encode themselves, as predicted.
double encoding_seconds(const ServePools& pools, const ServingSim& sim) {
  const PoolSums& readers = sim.stats().pool(pools.pools().size() - 1);
  double seconds = 0;
  for (std::size_t i = 0; i < readers.encoded_together.size(); ++i) {
    seconds += readers.encoded_together[i] * pools.encoder()->seconds[i];
  }
  return seconds;
}

}  // namespace

void add_image_rows(const ServePools& pools, const ServingSim& sim, Outcome& outcome) {
  if (!pools.encoder()) return;
  Breakdown sums;
  const std::vector<double> batches = encoded_batches(pools, sim);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    for (const KernelRow& row : pools.encoder()->batches[i].rows) sums.add(row, batches[i]);
  }
  std::vector<KernelRow> rows = std::move(sums).take();
  const double waited = encoding_seconds(pools, sim) * (pools.main().encode_slower - 1);
  add_wait_row(Seconds{waited}, sim.stats().pool(0).encoded, Phase::prefill, rows);
  for (KernelRow& row : rows) {
    row.role = DeploymentRole::encode;
    outcome.kernels.push_back(row);
  }
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
    double batches = 0;
    for (const double count : apart.together()) batches += count;
    if (apart.batches() && batches > 0) metrics.encode_batch = apart.encoded() / batches;
    return;
  }
  const PoolSums& readers = sim.stats().pool(pools.pools().size() - 1);
  const double encoding = encoding_seconds(pools, sim) * pools.main().encode_slower;
  if (readers.busy > 0) metrics.encode_share = encoding / readers.busy;
}

namespace {

// Encoders with devices of their own draw power at rest, too; what replicas that read draw while they encode takes the place
// of what they would draw otherwise. False where that is not known.
bool add_encoder_energy(const ServePools& pools, const ServingSim& sim, const Outcome& outcome,
                        Joules& energy) {
  const Encoders& apart = sim.encoders();
  const Deployed& on = pools.encoder()->deployed;
  const std::size_t readers = pools.pools().size() - 1;
  const Device& device = apart.any() ? on.spec->device : pools.pools()[readers].context.device;
  if (!states_power(device)) return false;
  Joules of_one;
  for (const KernelRow& row : outcome.kernels) {
    if (row.role == DeploymentRole::encode) of_one += row.work.energy;
  }
  if (apart.any()) {
    const double on_seconds = double(pools.encoder()->apart.replicas) * sim.makespan();
    of_one += power_at_rest(device) * Seconds{std::max(0.0, on_seconds - apart.busy())};
  }
  energy += of_one * double(on.shard.parallel.devices_of_replica());
  return true;
}

}  // namespace

void report_energy(const ServePools& pools, ServingSim& sim, const PoolRows& ends,
                   Outcome& outcome) {
  // What a draft on devices of its own draws at rest is in no row.
  if (pools.drafts_apart()) return;
  Joules energy;
  if (pools.encoder() && !add_encoder_energy(pools, sim, outcome, energy)) return;
  for (std::size_t i = 0; i < pools.pools().size(); ++i) {
    const PoolSetup& pool = pools.pools()[i];
    if (!states_power(pool.context.device)) return;
    const Parallelism& layout = pool.context.shard.parallel;
    const double devices_of_stage = double(layout.devices_of_replica() / layout.pp);
    const Watts at_rest = power_at_rest(pool.context.device);
    for (const KernelRow& row : rows_of(outcome.kernels, ends, i)) {
      // The others of a stage rest while a draft works on some of its devices.
      const double devices = pools.devices_of_stage(i, row.role);
      energy +=
          row.work.energy * devices + at_rest * (row.work.exposed() * (devices_of_stage - devices));
    }
    // For all stages of a pipeline: rows are of each stage in turn, and as many lanes wait as there are stages. Replicas that
    // are off draw nothing.
    const double on = replica_seconds(sim, pool, i) * double(layout.pp);
    const Seconds idle{std::max(0.0, on - sim.stats().pool(i).stepping())};
    energy += at_rest * idle * devices_of_stage;
  }
  outcome.metrics.energy = energy;
  if (pools.main().clock.varies()) outcome.metrics.clock_mean = sim.table(0).clock_mean();
  const double tokens = sim.stats().summary().tokens_out;
  if (tokens > 0) outcome.metrics.energy_j_per_output_token = energy.value / tokens;
}

}  // namespace engine
