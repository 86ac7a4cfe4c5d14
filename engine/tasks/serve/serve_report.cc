#include "engine/tasks/serve/serve_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/kernels/peak_in_use.h"
#include "engine/tasks/report_price.h"
#include "engine/tasks/report_speculation.h"
#include "engine/tasks/serve/report_fleet.h"
#include "engine/tasks/serve/report_mechanisms.h"
#include "engine/tasks/serve/slo_judgement.h"
#include "engine/tasks/task_table.h"

namespace engine {
namespace {

// The kernels of all pools, one after the other.
PoolRows gather_kernels(const ServePools& pools, ServingSim& sim, Outcome& outcome) {
  Savings saved;
  std::vector<KernelRow> rows;
  PoolRows ends;
  for (std::size_t i = 0; i < pools.pools().size(); ++i) {
    sim.table(i).report(rows);
    for (KernelRow& row : rows) {
      if (row.role == DeploymentRole::main) row.role = pools.pools()[i].role;
      // A pool that only writes has tables for prompts, too.
      if (row.work.calls > 0) outcome.kernels.push_back(row);
    }
    saved.add(sim.table(i).saved());
    ends.push_back(outcome.kernels.size());
  }
  outcome.bound = saved.largest();
  add_image_rows(pools, sim, outcome);
  return ends;
}

// Sums of the kernels table.
void report_kernels(Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  metrics.compute_time = metrics.attention_time = metrics.communication_time = Seconds{0};
  metrics.host_time = metrics.gap_time = Seconds{0};
  std::optional<Tier> least;
  Seconds waited, in_lockstep;
  for (const KernelRow& row : outcome.kernels) {
    const Seconds time = row.work.exposed();
    if (row.family == Family::gap) {
      metrics.gap_time += time;
    } else if (row.op == OpName::neighbour) {
      waited += time;
    } else if (row.op == OpName::lockstep) {
      in_lockstep += time;
    } else if (row.family == Family::host) {
      metrics.host_time += time;
    } else if (row.bound == Bound::network) {
      metrics.communication_time += time;
    } else {
      (is_attention(row.family) ? metrics.attention_time : metrics.compute_time) += time;
      least = std::min(least.value_or(row.tier), row.tier);
      outcome.extrapolated = outcome.extrapolated || row.extrapolated;
    }
  }
  if (least) outcome.tier = *least;
  if (waited.value > 0) metrics.sharing_time = waited;
  if (in_lockstep.value > 0) metrics.lockstep_time = in_lockstep;
}

// How much of what their devices could do the pools did, and a draft that has devices of its own.
void report_device_use(const ServePools& pools, const ServingSim& sim, const PoolRows& ends,
                       Outcome& outcome) {
  Flops flops, could_flops;
  Bytes bytes, could_bytes;
  const auto could = [&](const Device& device, const Quantization& quant, double seconds) {
    could_flops += peak_in_use(device, quant) * Seconds{seconds};
    could_bytes += device.memory_bandwidth * Seconds{seconds};
  };
  for (std::size_t i = 0; i < pools.pools().size(); ++i) {
    const PoolSetup& pool = pools.pools()[i];
    const ModelShard& shard = pool.context.shard;
    const double seconds = replica_seconds(sim, pool, i);
    could(pool.context.device, shard.quant, double(shard.parallel.devices_of_replica()) * seconds);
    if (i == 0 && pools.drafts_apart()) {
      const Deployment& draft = pools.draft_apart();
      could(draft.device, draft.quant, double(draft.parallel.devices_of_replica()) * seconds);
    }
    for (const KernelRow& row : rows_of(outcome.kernels, ends, i)) {
      const bool computes =
          row.family != Family::gap && row.family != Family::host && row.bound != Bound::network;
      if (!computes) continue;
      const double devices = pools.devices_of_stage(i, row.role);
      flops += row.work.flops * devices;
      bytes += row.work.from_memory * devices;
    }
  }
  if (could_flops.value <= 0) return;
  outcome.metrics.model_flops_utilization = flops / could_flops;
  outcome.metrics.memory_bandwidth_utilization = bytes / could_bytes;
}

double busy_share(const ServingSim& sim, const PoolSetup& pool, std::size_t index) {
  const double busy = sim.stats().pool(index).stepping();
  const double pipelined = double(pool.context.shard.parallel.pp);
  // A step that is running when the run ends counts whole.
  return std::min(1.0, busy / (replica_seconds(sim, pool, index) * pipelined));
}

double mean_batch(const PoolSums& sums) {
  return sums.steps > 0 ? sums.sequence_steps / sums.steps : 0;
}

// What came from below the devices' memory, of all pools.
void report_tiers(const ServePools& pools, const ServingStats::Summary& summary, Metrics& metrics) {
  const double looked_up = std::max(1.0, summary.looked_up);
  const auto report = [&](TierName name, double& hit_rate) {
    const auto place = std::size_t(name);
    const bool exists = std::ranges::any_of(
        pools.pools(), [place](const PoolSetup& pool) { return pool.tiers[place].blocks > 0; });
    if (exists) hit_rate = summary.tier_tokens[place] / looked_up;
  };
  report(TierName::peer, metrics.peer_hit_rate);
  report(TierName::host, metrics.host_hit_rate);
  report(TierName::disk, metrics.disk_hit_rate);
  report(TierName::store, metrics.store_hit_rate);
  if (summary.loads > 0) metrics.kv_load = Seconds{summary.load_seconds / summary.loads};
}

// Share of their time that the processes in front of clients need for all tokens, or for as many as a message carries.
double front_end_use(const PoolSetup& pool, const Metrics& metrics) {
  const HostSettings& host = pool.context.host;
  const double messages = metrics.output.value / double(pool.settings.stream_interval);
  const double replicas = metrics.replicas_mean > 0 ? metrics.replicas_mean : double(pool.replicas);
  return messages * host.front_end_per_message.value /
         (double(host.front_end_processes) * replicas);
}

// What the main deployment's replicas were busy with, and those that read prompts for it.
void report_pools(const ServePools& pools, const ServingSim& sim, Metrics& metrics) {
  const PoolSums& main = sim.stats().pool(0);
  metrics.batch_mean = mean_batch(main);
  metrics.front_end_use = front_end_use(pools.main(), metrics);
  metrics.kv_peak = main.kv_peak / double(pools.main().kv_blocks);
  metrics.kv_waste = main.held > 0 ? main.waste / main.held : 0;
  if (main.busy + sim.idle_seconds(0) > 0) {
    metrics.utilization = busy_share(sim, pools.main(), 0);
    const double room = metrics.kv_blocks * double(pools.main().settings.block_size);
    // Lanes of a pipeline may share prefixes, too.
    metrics.kv_use = std::min(
        main.kv_token_seconds / (room * replica_seconds(sim, pools.main(), 0)), metrics.kv_peak);
  }
  report_tiers(pools, sim.stats().summary(), metrics);
  if (pools.pools().size() == 1) return;
  const PoolSetup& readers = pools.pools()[1];
  const ModelShard& shard = readers.context.shard;
  metrics.prefill_devices = double(readers.replicas * shard.parallel.devices_of_replica());
  metrics.prefill_batch_mean = mean_batch(sim.stats().pool(1));
  metrics.prefill_kv_peak = sim.stats().pool(1).kv_peak / double(readers.kv_blocks);
  if (sim.stats().pool(1).busy + sim.idle_seconds(1) > 0) {
    metrics.prefill_utilization = busy_share(sim, readers, 1);
  }
  const MeasuredSums& measured = sim.stats().measured();
  if (measured.carried <= 0) return;
  metrics.transfer = Seconds{measured.transfer_seconds / measured.carried};
  metrics.transfer_share = measured.transfer_seconds / (metrics.e2e.value * measured.requests);
}

struct Span {
  double from, until;
};
Span whole_run(const ServingSim& sim) { return {0, sim.makespan()}; }
// The one that rates are over: before the first request of a run that is measured whole there is nothing to pay for, either.
Span measured_span(const ServingSim& sim) {
  const MeasuredPart& part = sim.stats().part();
  return part.empty() ? whole_run(sim) : Span{part.from, part.until};
}

// The share of a span in which a pool's replicas are paid for. In a fleet of fixed size that is all of it, repairs included, since its
// devices are reserved or owned. A fleet that follows the load gives back what is broken, and starts another replica.
double pool_on_share(const ServePools& pools, const ServingSim& sim, std::size_t pool,
                     const Span& span) {
  if (!sim.scaler(pool).follows_load()) return 1;
  const double all = (span.until - span.from) * double(pools.pools()[pool].replicas);
  return all > 0 ? sim.scaler(pool).on_seconds(span.from, span.until) / all : 1;
}

// Replicas that come and go are paid for while they are on. A draft goes with the main deployment's; encoders are always on.
OnShare on_share(const Scenario& scenario, const ServePools& pools, const ServingSim& sim,
                 const Span& span) {
  return [&, span](const Deployment& deployment) {
    if (&deployment == &scenario.encode.deployment) return 1.0;
    return pool_on_share(pools, sim, &deployment == &scenario.prefill.deployment ? 1 : 0, span);
  };
}

double devices_on(const Scenario& scenario, const OnShare& share) {
  double on = 0;
  each_deployment(scenario, [&](const Deployment& deployment, double devices) {
    on += devices * share(deployment);
  });
  return on;
}

void report_scaling(const Scenario& scenario, const ServePools& pools, const ServingSim& sim,
                    Metrics& metrics) {
  metrics.device_hours =
      devices_on(scenario, on_share(scenario, pools, sim, whole_run(sim))) * sim.makespan() / 3600;
  for (std::size_t i = 0; i < pools.pools().size(); ++i) {
    if (!sim.scaler(i).follows_load()) continue;
    metrics.requests_held = sim.stats().summary().held;
    const double on = pool_on_share(pools, sim, i, measured_span(sim));
    (i == 0 ? metrics.replicas_mean : metrics.prefill_replicas_mean) =
        on * double(pools.pools()[i].settings.replicas);
    (i == 0 ? metrics.replica_starts : metrics.prefill_replica_starts) = sim.scaler(i).starts();
  }
}

// What proposals took, and how many came to nothing.
void report_drafts(const ServePools& pools, ServingSim& sim, Metrics& metrics) {
  const PoolSetup& main = pools.main();
  if (main.draft == nullptr) return;
  const StepTable::DecodeSums& sums = sim.table(0).decode_sums();
  const PoolSums& counted = sim.stats().pool(0);
  double proposed = double(main.pace.queries - 1);
  double per_step = double(main.pace.tokens) / double(main.pace.steps);
  if (counted.verifications > 0) {
    proposed = counted.proposed_tokens / counted.verifications;
    per_step = counted.verified_tokens / counted.verifications;
  }
  report_speculation({.proposed = proposed,
                      .per_step = per_step,
                      .sequence_steps = sums.sequence_steps,
                      .beyond_end = sim.stats().pool(0).wasted_tokens,
                      .proposing = Seconds{sums.proposing},
                      .decoding = Seconds{sums.seconds}},
                     metrics);
  // Nothing was verified, since every answer was one token.
  if (sums.sequence_steps <= 0) {
    metrics.accepted_tokens_per_step = metrics.proposed_tokens_per_step = kNoValue;
  }
}

// Where a run is measured to its last answer, that comes after its last arrival, and a run that is stopped never answers some of
// those that came: all arrivals count, or all after a warm-up, up to the last one, each with the gap before it. What comes at once
// comes at no rate. A curve with an end says for how long requests come.
RequestsPerSecond offered_rate(const ServingStats& stats) {
  const MeasuredPart& part = stats.part();
  const RunWatch& watch = stats.watch();
  const bool whole = watch.plan().kind == RunKind::whole;
  const bool to_the_last = part.all || (whole && part.until >= watch.last_arrival());
  if (!to_the_last) return RequestsPerSecond{stats.measured().arrived / part.span()};
  const bool from_the_first = part.from <= watch.first_arrival();
  const double came = from_the_first ? double(watch.arrivals()) : stats.measured().arrived;
  if (const double end = watch.plan().curve_end; end > 0) {
    const double until = std::min(part.until, std::max(end, watch.last_arrival()));
    return RequestsPerSecond{came / (until - part.from)};
  }
  const double arriving = watch.last_arrival() - std::max(part.from, watch.first_arrival());
  return RequestsPerSecond{arriving > 0 ? (came - 1) / arriving : kNoValue};
}

void report_rates(const Scenario& scenario, const ServePools& pools, const ServingSim& sim,
                  Metrics& metrics) {
  const ServingStats& stats = sim.stats();
  const double span = stats.part().span();
  if (!(span > 0)) return;
  const MeasuredSums& sums = stats.measured();
  const ServedMeans means = served_means(stats);
  metrics.offered = offered_rate(stats);
  metrics.throughput = means.throughput;
  metrics.goodput = RequestsPerSecond{sums.good / span};
  metrics.output = means.output;
  metrics.total = TokensPerSecond{(sums.output_tokens + sums.prompt_tokens) / span};
  const OnShare on = on_share(scenario, pools, sim, measured_span(sim));
  const double devices = devices_on(scenario, on);
  metrics.per_device = metrics.total / devices;
  metrics.output_per_device = metrics.output / devices;
  report_price(scenario, metrics.total - metrics.output, metrics, on);
  metrics.goodput_per_device = metrics.goodput / devices;
  if (metrics.rent.value > 0) metrics.goodput_per_usd = metrics.goodput.value / metrics.rent.value;
}

// What was measured, and how far to trust it.
void report_measurement(const ServingSim& sim, Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  const MeasuredPart& part = sim.stats().part();
  const RunVerdict& verdict = sim.verdict();
  const bool whole = sim.stats().watch().plan().kind == RunKind::whole;
  outcome.saturation = verdict.saturation;
  metrics.measured_from = Seconds{part.from};
  metrics.measured_until = Seconds{part.until};
  metrics.requests_measured = sim.stats().measured().requests;
  metrics.steady = verdict.steady() ? 1 : 0;
  if (metrics.prefix_hit_rate > 0) metrics.cache_drift = std::abs(verdict.cache_drift);
  if (!whole) metrics.precision_met = verdict.precise() ? 1 : 0;
}

}  // namespace

const Slo& served_slo(const Scenario& scenario) {
  return scenario.slo.any() ? scenario.slo : scenario.capacity.slo;
}

ServedMeans served_means(const ServingStats& stats) {
  const double span = stats.part().span();
  ServedMeans means{.ttft = Seconds{stats.ttft.mean()},
                    .tpot = Seconds{stats.tpot.mean()},
                    .e2e = Seconds{stats.e2e.mean()},
                    .throughput = RequestsPerSecond{kNoValue},
                    .output = TokensPerSecond{kNoValue}};
  if (span > 0) {
    means.throughput = RequestsPerSecond{stats.measured().finished / span};
    means.output = TokensPerSecond{stats.measured().output_tokens / span};
  }
  return means;
}

void report_serving(const Scenario& scenario, const ServePools& pools, ServingSim& sim,
                    Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  ServingStats& stats = sim.stats();
  const ServingStats::Summary summary = stats.summary();
  const MeasuredSums& measured = stats.measured();
  const Latency ttft = latency_of(stats.ttft), tpot = latency_of(stats.tpot);
  const Latency itl = gap_latency(stats), e2e = latency_of(stats.e2e);
  const Latency queue = latency_of(stats.queue);
  metrics.ttft = ttft.mean, metrics.ttft_p50 = ttft.p50, metrics.ttft_p90 = ttft.p90;
  metrics.ttft_p95 = ttft.p95, metrics.ttft_p99 = ttft.p99;
  metrics.tpot = tpot.mean, metrics.tpot_p50 = tpot.p50, metrics.tpot_p90 = tpot.p90;
  metrics.tpot_p95 = tpot.p95, metrics.tpot_p99 = tpot.p99;
  metrics.itl = itl.mean, metrics.itl_p50 = itl.p50, metrics.itl_p90 = itl.p90;
  metrics.itl_p95 = itl.p95, metrics.itl_p99 = itl.p99;
  metrics.e2e = e2e.mean, metrics.e2e_p50 = e2e.p50, metrics.e2e_p90 = e2e.p90;
  metrics.e2e_p95 = e2e.p95, metrics.e2e_p99 = e2e.p99;
  metrics.queue = queue.mean, metrics.queue_p50 = queue.p50, metrics.queue_p90 = queue.p90;
  metrics.queue_p95 = queue.p95, metrics.queue_p99 = queue.p99;

  report_rates(scenario, pools, sim, metrics);
  metrics.prefix_hit_rate = summary.looked_up > 0 ? summary.found / summary.looked_up : 0;
  report_measurement(sim, outcome);
  if (tpot.mean.value > 0) metrics.output_per_user = TokensPerSecond{1 / tpot.mean.value};
  if (e2e.mean.value > 0) {
    const double tokens = measured.prompts + measured.outputs;
    metrics.total_per_user = TokensPerSecond{tokens / (measured.requests * e2e.mean.value)};
  }
  const Slo& slo = served_slo(scenario);
  if (slo.any() || scenario.load.classes.any()) {
    const double wanted = measured.requests + measured.given_up;
    metrics.slo_attainment = wanted > 0 ? measured.good_requests / wanted : 0;
  }
  if (slo.any()) metrics.slo_met = meets(slo, stats) ? 1 : 0;
  metrics.requests_finished = summary.finished;
  metrics.requests_refused = summary.refused;
  metrics.preemptions = summary.preemptions;
  metrics.recomputed_tokens = summary.lost_tokens;
  const double makespan = sim.makespan();
  metrics.makespan = Seconds{makespan};
  metrics.steps = summary.steps;
  if (makespan > 0) metrics.concurrency = summary.in_system_seconds / makespan;
  report_pools(pools, sim, metrics);
  report_scaling(scenario, pools, sim, metrics);
  report_fleet(scenario, pools.pools(), sim, metrics);
  const PoolRows ends = gather_kernels(pools, sim, outcome);
  report_drafts(pools, sim, metrics);
  report_kernels(outcome);
  report_answers(scenario, sim, metrics);
  report_adapters(scenario, sim, metrics);
  report_images(pools, sim, metrics);
  report_energy(pools, sim, ends, outcome);
  report_device_use(pools, sim, ends, outcome);
}

}  // namespace engine
