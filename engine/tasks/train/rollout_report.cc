#include "engine/tasks/train/rollout_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/kernels/power.h"
#include "engine/step/interval.h"

namespace engine {
namespace {

// Batches of an iteration's samples, over all epochs; the last one need not be full.
double batches_of(const TrainSettings& train, double tokens) {
  return tokens * double(train.rollout.epochs) /
         (double(train.global_batch) * double(train.sequence));
}

// How far off kernels of a kind may be, as factors of their time.
struct Ends {
  double low = 1, high = 1;
};

Ends ends_of(const std::vector<KernelRow>& kernels) {
  const Interval interval = interval_of(kernels);
  Seconds timed;
  for (const KernelRow& row : kernels) timed += row.work.exposed();
  if (timed.value <= 0) return {};
  return {interval.low / timed, interval.high / timed};
}

// What one device draws on average while it passes forward.
Watts forward_power(const std::vector<KernelRow>& kernels) {
  Joules drawn;
  Seconds timed;
  for (const KernelRow& row : kernels) {
    if (row.phase != Phase::forward) continue;
    drawn += row.work.energy;
    timed += row.work.exposed();
  }
  return timed.value > 0 ? drawn / timed : Watts{0};
}

// Energy of one iteration: samples, scores and updates. Devices that train are at rest while others make samples and while weights travel,
// and the others are at rest at all other times.
Joules iteration_energy(const Scenario& scenario, const IterationPhases& phases,
                        const Rollout& rollout, Joules update, Watts scoring) {
  const RolloutSettings& settings = scenario.train.rollout;
  const Seconds total = phases.total(settings.asynchronous);
  const Seconds samples_here = settings.colocated ? phases.rollout : Seconds{0};
  const Seconds rests = total - samples_here - phases.scoring - phases.update;
  const Joules trainer = update + scoring * phases.scoring + power_at_rest(scenario.device) * rests;
  const Joules others_at_rest = power_at_rest(rollout.on.device) * (total - phases.rollout) *
                                rollout_devices(scenario, rollout.on);
  return rollout.energy + trainer * double(scenario.parallel.devices()) + others_at_rest;
}

// Turns figures of one optimizer step into those of one iteration. The arithmetic of its batches counts.
void rescale(const IterationPhases& phases, bool asynchronous, Ends sampling, double tokens,
             double batches, Metrics& metrics) {
  const Seconds iteration = phases.total(asynchronous), step = metrics.iteration_time;
  const double updating = step * batches / iteration;
  const auto with = [&](double made, double trained) {
    return IterationPhases{.rollout = phases.rollout * made,
                           .scoring = phases.scoring * trained,
                           .update = phases.update * trained,
                           .transfer = phases.transfer}
        .total(asynchronous);
  };
  metrics.iteration_time_low = with(sampling.low, metrics.iteration_time_low / step);
  metrics.iteration_time_high = with(sampling.high, metrics.iteration_time_high / step);
  metrics.iteration_time = iteration;
  metrics.tokens_per_s = tokens / iteration.value;
  metrics.tokens_per_s_per_device = metrics.tokens_per_s / metrics.devices;
  metrics.total = TokensPerSecond{metrics.tokens_per_s};
  metrics.per_device = metrics.total / metrics.devices;
  metrics.model_flops_utilization *= updating;
  metrics.hardware_flops_utilization *= updating;
}

}  // namespace

std::optional<Refusal> sample(const TaskPoint& point, const TrainStepTime& step,
                              SampledIteration& sampled) {
  const TrainMemory& memory = step.memory;
  if (auto problem = make_rollout(point, memory, sampled.rollout)) return problem;
  const TrainSettings& train = point.scenario.train;
  const double length = sampled.rollout.length, tokens = sampled.rollout.tokens;
  if (length > double(train.sequence)) {
    return Refusal{ReasonClass::load,
                   fmt::format("samples of {:.0f} tokens are longer than train.sequence ({})",
                               length, train.sequence)};
  }
  if (batches_of(train, tokens) < 1 - 1e-12) {
    return Refusal{ReasonClass::load,
                   fmt::format("the {:.0f} tokens of all samples do not fill a batch of "
                               "train.global_batch x train.sequence ({:.0f})",
                               tokens * double(train.rollout.epochs),
                               double(train.global_batch) * double(train.sequence))};
  }
  return weight_transfer(point, memory, sampled.rollout, sampled.transfer);
}

void report_rollout(const TaskPoint& point, const TrainStepTime& step,
                    const SampledIteration& sampled, Outcome& outcome) {
  const TrainSettings& train = point.scenario.train;
  const RolloutSettings& settings = train.rollout;
  const Rollout& rollout = sampled.rollout;
  IterationPhases phases{.rollout = rollout.time, .transfer = sampled.transfer};
  const double batches = batches_of(train, rollout.tokens);
  const double steps = std::ceil(batches * (1 - 1e-12));
  phases.scoring =
      step.forward_alone * (settings.scoring_passes * batches / double(settings.epochs));
  phases.update = (step.iteration - step.optimizer) * batches + step.optimizer * steps;

  Metrics& metrics = outcome.metrics;
  const Seconds iteration = phases.total(settings.asynchronous);
  metrics.update_steps = steps;
  const Bytes beside_samples = step.memory.host - step.memory.host_activations + rollout.away;
  if (const Bytes host = std::max(step.memory.host, beside_samples); host.value > 0) {
    metrics.host_memory = host;
  }
  const Joules update =
      metrics.iteration_energy / metrics.devices * (phases.update / step.iteration);
  metrics.iteration_energy =
      iteration_energy(point.scenario, phases, rollout, update, forward_power(outcome.kernels));
  rescale(phases, settings.asynchronous, ends_of(rollout.kernels), rollout.tokens, batches,
          metrics);
  metrics.rollout_time = phases.rollout;
  metrics.scoring_time = phases.scoring;
  metrics.update_time = phases.update;
  metrics.weight_transfer_time = phases.transfer;
  metrics.rollout_tokens_per_s = rollout.generated / rollout.time.value;
  metrics.samples_per_s = double(settings.prompts * settings.samples) / iteration.value;
  for (KernelRow& row : outcome.kernels) {
    Work all;
    all.add(row.work, row.phase == Phase::optimizer ? steps : batches);
    row.work = all;
  }
  outcome.kernels.insert(outcome.kernels.end(), rollout.kernels.begin(), rollout.kernels.end());
}

}  // namespace engine
