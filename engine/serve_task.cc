#include "engine/serve_task.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "engine/base/random.h"
#include "engine/kernels/gemm.h"
#include "engine/serve_report.h"
#include "engine/serving/capacity_estimate.h"
#include "engine/serving/capacity_search.h"
#include "engine/serving/serving_sim.h"
#include "engine/workload/request_source.h"

namespace engine {
namespace {

// The load of a replicate: the same for every design and every rate.
std::uint64_t load_seed(const Scenario& scenario, std::int64_t round) {
  const std::uint64_t replicate =
      std::uint64_t(scenario.replicate * scenario.load.replicates + round);
  return mixed_seed(mixed_seed(0, std::uint64_t(scenario.seed)), replicate);
}

const Trace* trace_of(const Scenario& scenario, const Resources& resources) {
  return scenario.load.trace.empty() ? nullptr : resources.find_trace(scenario.load.trace);
}

// Scratch of this thread: its memory is used again, nothing it holds reaches another point's results.
ServingSim& simulation() {
  thread_local ServingSim sim;
  return sim;
}

// A point set up and ready to be simulated at any level of load.
struct Setting {
  const Scenario& scenario;
  const StepContext& context;
  const Trace* trace;
  std::int64_t kv_blocks;
  std::int64_t replicas;
};

void simulate(const Setting& setting, const LoadLevel& level, std::int64_t round, Outcome* rows,
              ServingSim& sim) {
  const Scenario& scenario = setting.scenario;
  const Slo& slo = scenario.capacity.slo.any() ? scenario.capacity.slo : scenario.slo;
  ServingProblem problem{.settings = scenario.serving,
                         .load = scenario.load,
                         .trace = setting.trace,
                         .slo = slo,
                         .context = setting.context,
                         .level = level,
                         .kv_blocks = setting.kv_blocks,
                         .replicas = setting.replicas,
                         .longest = scenario.model.max_context,
                         .seed = load_seed(scenario, round)};
  if (rows != nullptr) {
    if (scenario.output.requests) problem.request_rows = &rows->requests;
    if (scenario.output.timeline.value > 0) {
      problem.timeline = scenario.output.timeline;
      problem.timeline_rows = &rows->timeline;
    }
  }
  sim.run(problem);
}

using MetricArray = std::array<double, sizeof(Metrics) / sizeof(double)>;
static_assert(sizeof(MetricArray) == sizeof(Metrics), "every metric is a number");

// Half of the 95% interval of the mean of `values`, by Student's distribution.
double half_interval(const std::vector<double>& values) {
  constexpr std::array<double, 10> student{12.706, 4.303, 3.182, 2.776, 2.571,
                                           2.447,  2.365, 2.306, 2.262, 2.228};
  const double n = double(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const std::size_t freedom = values.size() - 1;
  const double t = freedom <= student.size() ? student[freedom - 1] : 1.96 + 2.4 / double(freedom);
  return t * std::sqrt(squares / double(freedom) / n);
}

// Metrics become means over the rounds; a few get their intervals.
void average(const std::vector<Metrics>& rounds, Metrics& metrics) {
  MetricArray sum{};
  for (const Metrics& round : rounds) {
    const auto values = std::bit_cast<MetricArray>(round);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i] / double(rounds.size());
  }
  metrics = std::bit_cast<Metrics>(sum);
  const auto interval = [&rounds](auto member) {
    std::vector<double> values;
    for (const Metrics& round : rounds) values.push_back((round.*member).value);
    return half_interval(values);
  };
  metrics.ttft_p50_ci = Seconds{interval(&Metrics::ttft_p50)};
  metrics.ttft_p99_ci = Seconds{interval(&Metrics::ttft_p99)};
  metrics.tpot_p50_ci = Seconds{interval(&Metrics::tpot_p50)};
  metrics.tpot_p99_ci = Seconds{interval(&Metrics::tpot_p99)};
  metrics.e2e_p99_ci = Seconds{interval(&Metrics::e2e_p99)};
  metrics.output_ci = TokensPerSecond{interval(&Metrics::output)};
}

LoadLevel level_of(const Setting& setting, const CapacityEstimate& estimate,
                   const TypicalRequest& typical) {
  const Load& load = setting.scenario.load;
  LoadLevel level{.rate = load.rate.value, .clients = load.clients};
  if (load.throughput_fraction > 0) {
    level.rate = load.throughput_fraction * estimate.requests / double(load.turns);
  }
  if (load.kv_fraction > 0) {
    const double tokens =
        double(setting.kv_blocks * setting.replicas * setting.scenario.serving.block_size);
    const double clients = load.kv_fraction * tokens / (typical.prompt + typical.output / 2);
    level.clients = std::max<std::int64_t>(1, std::int64_t(clients));
  }
  return level;
}

}  // namespace

TypicalRequest typical_request(const Scenario& scenario, const Resources& resources) {
  const Load& load = scenario.load;
  const Trace* trace = trace_of(scenario, resources);
  if (load_problem(load, trace)) return {};
  if (load.arrivals == ArrivalKind::trace) {
    // A few hundred rows spread over the trace: an estimate, whatever its length.
    const std::size_t stride = std::max<std::size_t>(1, trace->size() / 512);
    TypicalRequest sum{0, 0};
    double count = 0;
    for (std::size_t row = 0; row < trace->size(); row += stride) {
      sum.prompt += trace->prompt[row];
      sum.output += trace->output[row];
      count += 1;
    }
    return {sum.prompt / count, sum.output / count};
  }
  const MeanLengths mean = mean_lengths(load, trace, load_seed(scenario, 0), simulation().memory());
  // Each turn re-sends the ones before it.
  const double before = double(load.turns - 1) / 2;
  return {mean.prompt + before * (mean.prompt + mean.output), mean.output};
}

void evaluate_serve(const Scenario& scenario, const Resources& resources,
                    const StepContext& context, Outcome& outcome) {
  const auto refuse = [&outcome](std::string reason) {
    outcome.status = Status::infeasible;
    outcome.reason = std::move(reason);
  };
  const Trace* trace = trace_of(scenario, resources);
  if (auto problem = load_problem(scenario.load, trace)) return refuse(std::move(*problem));
  const ServingSettings& serving = scenario.serving;
  const std::int64_t fit =
      std::int64_t(outcome.metrics.kv_capacity_tokens / double(serving.block_size));
  Setting setting{.scenario = scenario,
                  .context = context,
                  .trace = trace,
                  .kv_blocks = serving.kv_blocks > 0 ? serving.kv_blocks : fit,
                  .replicas = serving.replicas * scenario.parallel.dp};
  if (setting.kv_blocks < 1) return refuse("not one KV block fits beside the model");
  outcome.metrics.devices = double(scenario.parallel.devices() * serving.replicas);
  outcome.metrics.kv_blocks = double(setting.kv_blocks);

  const TypicalRequest typical = typical_request(scenario, resources);
  CapacityEstimate estimate;
  const bool searching = scenario.capacity.slo.any();
  if (searching || scenario.load.throughput_fraction > 0) {
    estimate = capacity_estimate(serving, {typical.prompt, typical.output}, setting.kv_blocks,
                                 setting.replicas, context);
  }
  LoadLevel level = level_of(setting, estimate, typical);

  ServingSim& sim = simulation();
  if (searching) {
    if (scenario.load.arrivals == ArrivalKind::closed ||
        scenario.load.arrivals == ArrivalKind::trace ||
        scenario.load.arrivals == ArrivalKind::curve) {
      return refuse("capacity.slo searches over load.rate, which load.arrivals: " +
                    std::string(name_of(scenario.load.arrivals)) + " does not have");
    }
    const CapacityResult found =
        highest_rate(estimate.requests, scenario.capacity.tolerance, [&](double rate) {
          simulate(setting, {.rate = rate}, 0, nullptr, sim);
          return meets(scenario.capacity.slo, sim.stats());
        });
    outcome.metrics.capacity = RequestsPerSecond{found.rate};
    outcome.metrics.capacity_monotone = found.monotone ? 1 : 0;
    if (found.rate <= 0) return refuse("no rate meets capacity.slo");
    level.rate = found.rate;
  }
  std::vector<Metrics> rounds;
  const Metrics before = outcome.metrics;
  for (std::int64_t round = 0; round < scenario.load.replicates; ++round) {
    const bool first = round == 0;
    simulate(setting, level, round, first ? &outcome : nullptr, sim);
    if (first && scenario.load.replicates == 1) {
      report_serving(scenario, setting.replicas, sim, outcome);
      return;
    }
    // The kernels table shows the first round.
    Outcome other;
    Outcome& target = first ? outcome : other;
    target.metrics = before;
    report_serving(scenario, setting.replicas, sim, target);
    rounds.push_back(target.metrics);
  }
  average(rounds, outcome.metrics);
}

}  // namespace engine
