#include "engine/tasks/train/run_report.h"

#include <cmath>

#include "engine/base/random.h"
#include "engine/kernels/power.h"
#include "engine/tasks/report_price.h"
#include "engine/training/run/long_run.h"
#include "engine/training/run/run_times.h"
#include "engine/training/run/scaling_law.h"

namespace engine {
namespace {

FailingRun failing_run(const TrainSettings& train, const TrainStepTime& step,
                       const Metrics& metrics) {
  return {.between_failures = train.device_mtbf / metrics.devices,
          .checkpoint = step.checkpoint / train.checkpoint_bandwidth,
          .restart = train.restart_time};
}

// A run that ends before its first checkpoint writes none.
FailingRun without_checkpoints(FailingRun run) {
  run.checkpoint = Seconds{0};
  return run;
}

// `work`: of the whole run; 0: no run is planned.
void report_failures(const TrainSettings& train, const TrainStepTime& step, Seconds work,
                     Metrics& metrics) {
  if (train.device_mtbf.value <= 0) return;
  const FailingRun run = failing_run(train, step, metrics);
  metrics.checkpoint_size = step.checkpoint;
  metrics.checkpoint_time = run.checkpoint;
  metrics.checkpoint_every =
      train.checkpoint_interval.value > 0 ? train.checkpoint_interval : best_interval(run);
  const auto goodput_with_none = [&] { return goodput(without_checkpoints(run), work); };
  const bool none =
      work.value > 0 && (metrics.checkpoint_every >= work ||
                         (train.checkpoint_interval.value <= 0 &&
                          goodput_with_none() >= goodput(run, metrics.checkpoint_every)));
  if (none) metrics.checkpoint_every = work;
  metrics.training_goodput =
      goodput(none ? without_checkpoints(run) : run, metrics.checkpoint_every);
}

bool jitters(const TrainSettings& train) { return train.jitter > 0 || train.link_jitter > 0; }

// A step waits for the slowest device, and for the slowest of their links beside it.
void report_jitter(const TrainSettings& train, Seconds behind_links, Metrics& metrics) {
  if (!jitters(train)) return;
  const double mean = slowest_link(train, metrics.devices) - 1;
  const auto at = [&](double quantile) {
    const double links = slowest_factor(train.link_jitter, metrics.devices, quantile) - 1;
    return metrics.iteration_time * slowest_factor(train.jitter, metrics.devices, quantile) +
           behind_links * (mean > 0 ? links / mean : 0);
  };
  metrics.iteration_time_p50 = at(0.5);
  metrics.iteration_time_p95 = at(0.95);
  metrics.iteration_time_p99 = at(0.99);
}

// The mean of many steps, each of which waits for its slowest device and link.
void wait_for_the_slowest(const Scenario& scenario, Seconds behind_links, Metrics& metrics) {
  const TrainSettings& train = scenario.train;
  if (!jitters(train)) return;
  const Seconds undisturbed = metrics.iteration_time;
  const Seconds mean =
      undisturbed * mean_slowest_factor(train.jitter, metrics.devices) + behind_links;
  const double longer = mean / undisturbed;
  metrics.iteration_time = mean;
  metrics.iteration_time_low *= longer;
  metrics.iteration_time_high *= longer;
  metrics.tokens_per_s /= longer;
  metrics.tokens_per_s_per_device /= longer;
  metrics.total = metrics.total / longer;
  metrics.per_device = metrics.per_device / longer;
  metrics.model_flops_utilization /= longer;
  metrics.hardware_flops_utilization /= longer;
  metrics.iteration_energy +=
      power_at_rest(scenario.device) * (mean - undisturbed) * metrics.devices;
}

// How runs of equally many steps differ: by their steps, and by their failures.
RunTimes run_times(const TrainSettings& train, const TrainStepTime& step, double steps,
                   const Metrics& metrics) {
  const Seconds work = metrics.iteration_time * steps;
  RunTimes times{.failure_free = work};
  if (train.device_mtbf.value > 0) {
    const FailingRun run = failing_run(train, step, metrics);
    times = times_of(metrics.checkpoint_every >= work ? without_checkpoints(run) : run,
                     metrics.checkpoint_every, work);
  }
  if (jitters(train)) {
    const Seconds of_a_step =
        (metrics.iteration_time_p95 - metrics.iteration_time_p50) / normal_quantile(0.95);
    times.jitter = of_a_step * std::sqrt(steps);
  }
  return times;
}

double tokens_of_run(const TrainSettings& train, double parameters) {
  return train.loss > 0 ? loss_law(train.scaling_law).tokens_for(parameters, train.loss)
                        : train.tokens;
}

}  // namespace

double slowest_link(const TrainSettings& train, double devices) {
  return mean_slowest_factor(train.link_jitter, devices);
}

void report_run(const Scenario& scenario, const TrainStepTime& step, Seconds behind_links,
                Metrics& metrics) {
  const TrainSettings& train = scenario.train;
  report_jitter(train, behind_links, metrics);
  wait_for_the_slowest(scenario, behind_links, metrics);
  metrics.output = TokensPerSecond{0};
  report_price(scenario, metrics.total, metrics);
  metrics.output = TokensPerSecond{kNoValue};
  const double tokens = tokens_of_run(train, metrics.parameters);
  const double steps =
      tokens > 0 ? tokens / (metrics.tokens_per_s * metrics.iteration_time.value) : 0;
  const Seconds work = metrics.iteration_time * steps;
  report_failures(train, step, work, metrics);
  if (!(tokens > 0)) return;
  metrics.run_tokens = tokens;
  if (train.scaling_law != ScalingLaw::none) {
    metrics.run_loss = loss_law(train.scaling_law).loss(metrics.parameters, tokens);
  }
  const bool fails = train.device_mtbf.value > 0;
  metrics.run_time = work / (fails ? metrics.training_goodput : 1);
  metrics.run_price_usd = metrics.rent.value * metrics.run_time.value;
  metrics.run_energy = metrics.iteration_energy / metrics.iteration_time * metrics.run_time;
  if (fails) metrics.run_failures = metrics.run_time / (train.device_mtbf / metrics.devices);
  const RunTimes times = run_times(train, step, steps, metrics);
  if (fails || times.jitter.value > 0) metrics.run_time_p95 = times.quantile(0.95);
  if (train.deadline.value > 0) {
    metrics.finish_probability = times.probability_within(train.deadline);
  }
}

}  // namespace engine
