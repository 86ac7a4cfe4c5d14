#include "engine/tasks/serve/serve_report.h"

#include <algorithm>
#include <array>

#include "engine/kernels/gemm.h"
#include "engine/tasks/report_price.h"

namespace engine {
namespace {

struct Latency {
  Seconds mean, p50, p90, p95, p99;
};

Latency latency_of(Samples& samples) {
  Latency latency;
  latency.mean = Seconds{samples.mean()};
  latency.p50 = Seconds{samples.percentile(0.50)};
  latency.p90 = Seconds{samples.percentile(0.90)};
  latency.p95 = Seconds{samples.percentile(0.95)};
  latency.p99 = Seconds{samples.percentile(0.99)};
  return latency;
}

Latency gap_latency(const ServingStats& stats) {
  if (stats.gap_count() <= 0) {
    const Seconds none{kNoValue};
    return {none, none, none, none, none};
  }
  return {Seconds{stats.gap_mean()}, Seconds{stats.gap_percentile(0.50)},
          Seconds{stats.gap_percentile(0.90)}, Seconds{stats.gap_percentile(0.95)},
          Seconds{stats.gap_percentile(0.99)}};
}

bool within(const LatencyLimits& limits, const Latency& latency) {
  const auto holds = [](Seconds limit, Seconds value) {
    return limit.value <= 0 || value <= limit;  // not so where nothing was seen
  };
  return holds(limits.mean, latency.mean) && holds(limits.p50, latency.p50) &&
         holds(limits.p90, latency.p90) && holds(limits.p95, latency.p95) &&
         holds(limits.p99, latency.p99);
}

bool limited(const LatencyLimits& limits) { return request_limit(limits).value < kNever; }

// Sums of the kernels table.
void report_kernels(const Scenario& scenario, double seconds, Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  metrics.compute_time = metrics.attention_time = metrics.communication_time = Seconds{0};
  metrics.host_time = metrics.gap_time = Seconds{0};
  Flops flops;
  Bytes bytes;
  outcome.tier = Tier::measured;
  for (const KernelRow& row : outcome.kernels) {
    const Seconds time = row.work.exposed();
    if (row.family == Family::gap) {
      metrics.gap_time += time;
    } else if (row.family == Family::host) {
      metrics.host_time += time;
    } else if (row.bound == Bound::network) {
      metrics.communication_time += time;
    } else {
      (is_attention(row.family) ? metrics.attention_time : metrics.compute_time) += time;
      flops += row.work.flops;
      bytes += row.work.bytes;
      outcome.tier = std::min(outcome.tier, row.tier);
      outcome.extrapolated = outcome.extrapolated || row.extrapolated;
    }
  }
  if (seconds <= 0) return;
  const Dtype dtype = compute_dtype(scenario.quant.weights, scenario.quant.activations);
  metrics.model_flops_utilization = flops / Seconds{seconds} / matrix_peak(scenario.device, dtype);
  metrics.memory_bandwidth_utilization =
      bytes / Seconds{seconds} / scenario.device.memory_bandwidth;
}

void report_rates(const Scenario& scenario, const ServingStats& stats, Metrics& metrics) {
  const double span = stats.part().span();
  if (!(span > 0)) return;
  const MeasuredSums& sums = stats.measured();
  const ServedMeans means = served_means(stats);
  metrics.offered = RequestsPerSecond{sums.arrived / span};
  metrics.throughput = means.throughput;
  metrics.goodput = RequestsPerSecond{sums.good / span};
  metrics.output = means.output;
  metrics.total = TokensPerSecond{(sums.output_tokens + sums.prompt_tokens) / span};
  metrics.per_device = metrics.total / metrics.devices;
  metrics.output_per_device = metrics.output / metrics.devices;
  report_price(scenario, metrics.total - metrics.output, metrics);
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
  const bool keeps_up =
      verdict.saturation == Saturation::stable || verdict.saturation == Saturation::backlogged;
  metrics.steady = part.settled && keeps_up ? 1 : 0;
  if (!whole) metrics.precision_met = verdict.precise() ? 1 : 0;
}

}  // namespace

const Slo& served_slo(const Scenario& scenario) {
  return scenario.capacity.slo.any() ? scenario.capacity.slo : scenario.slo;
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

bool meets(const Slo& slo, ServingStats& stats) {
  if (stats.summary().refused > 0) return false;
  return (!limited(slo.ttft) || within(slo.ttft, latency_of(stats.ttft))) &&
         (!limited(slo.tpot) || within(slo.tpot, latency_of(stats.tpot))) &&
         (!limited(slo.itl) || within(slo.itl, gap_latency(stats))) &&
         (!limited(slo.e2e) || within(slo.e2e, latency_of(stats.e2e)));
}

void report_serving(const Scenario& scenario, ServingSim& sim, Outcome& outcome) {
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

  report_rates(scenario, stats, metrics);
  report_measurement(sim, outcome);
  if (tpot.mean.value > 0) metrics.output_per_user = TokensPerSecond{1 / tpot.mean.value};
  if (e2e.mean.value > 0) {
    const double tokens = measured.prompts + measured.outputs;
    metrics.total_per_user = TokensPerSecond{tokens / (measured.requests * e2e.mean.value)};
  }
  const Slo& slo = served_slo(scenario);
  if (slo.any()) {
    metrics.slo_attainment = measured.requests > 0 ? measured.good_requests / measured.requests : 0;
    metrics.slo_met = within(slo.ttft, ttft) && within(slo.tpot, tpot) && within(slo.itl, itl) &&
                              within(slo.e2e, e2e) && summary.refused == 0
                          ? 1
                          : 0;
  }
  metrics.requests_finished = summary.finished;
  metrics.requests_refused = summary.refused;
  metrics.preemptions = summary.preemptions;
  metrics.recomputed_tokens = summary.lost_tokens;
  metrics.prefix_hit_rate = summary.looked_up > 0 ? summary.found / summary.looked_up : 0;
  metrics.batch_mean = summary.steps > 0 ? summary.sequence_steps / summary.steps : 0;
  const double makespan = sim.makespan();
  metrics.makespan = Seconds{makespan};
  metrics.steps = summary.steps;
  // Time that lanes worked or waited. Work in which the run ended belongs to neither.
  const double lane_seconds = summary.busy + sim.idle_seconds();
  const double replica_seconds = lane_seconds / double(scenario.parallel.pp);
  if (lane_seconds > 0) {
    metrics.concurrency = summary.in_system_seconds / makespan;
    metrics.utilization = summary.busy / lane_seconds;
    metrics.kv_use = summary.kv_token_seconds /
                     (metrics.kv_blocks * double(scenario.serving.block_size) * replica_seconds);
  }
  metrics.kv_peak = summary.kv_peak / metrics.kv_blocks;
  metrics.kv_waste = summary.held > 0 ? summary.waste / summary.held : 0;
  sim.table().report(outcome.kernels);
  outcome.bound = sim.table().saved().largest();
  report_kernels(scenario, replica_seconds, outcome);
}

}  // namespace engine
