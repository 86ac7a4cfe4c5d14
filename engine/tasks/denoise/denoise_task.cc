#include "engine/tasks/denoise/denoise_task.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "engine/feasibility.h"
#include "engine/step/interval.h"
#include "engine/step/step_time.h"
#include "engine/tasks/report_images.h"

namespace engine {
namespace {

// Layers alone: patches are no words, and no word is chosen. All steps are alike, so a host that captures steps replays this one.
StepTime one_step(const TaskPoint& point, std::vector<KernelRow>& rows) {
  const DenoiseShape& images = point.scenario.denoise;
  const StepContext context = point.main.context(point.work);
  const ModelShard& shard = context.shard;
  const StageSpan layers{.layers = shard.layers, .first = false, .last = true};
  BatchShape batch;
  add_images(batch, images.sequences(), images.sequence());
  OpList ops;
  token_ops(shard, layers, batch, ops);
  attention_ops(shard, layers, batch, ops);
  const LaunchMode mode =
      context.host.mode == HostMode::graph ? LaunchMode::replay : LaunchMode::eager;
  const StepWork work{.layers = double(layers.layers.all()), .sequences = images.sequences()};
  return ops_time(ops, work, mode, context, Phase::forward, &rows);
}

}  // namespace

std::optional<Refusal> denoise_problem(const Scenario& scenario) {
  if (scenario.parallel.pp > 1) {
    return Refusal{ReasonClass::unsupported,
                   "images in stages: state parallel.pp: 1; parallel.tp and parallel.cp share an "
                   "image out"};
  }
  return too_long("denoise.tokens + denoise.text", scenario.denoise.sequence(), scenario.model);
}

MemoryDemand denoise_demand(const Scenario& scenario, const Resources&, Scratch&) {
  const DenoiseShape& images = scenario.denoise;
  return {.sequences = images.sequences(),
          .context = 0,
          .step_tokens = images.sequences() * images.sequence(),
          .sampled = 0};
}

void run_denoise(const TaskPoint& point, Outcome& outcome) {
  const Scenario& scenario = point.scenario;
  const double steps = double(scenario.denoise.steps);
  std::vector<KernelRow> rows;
  const StepTime step = one_step(point, rows);
  Metrics& metrics = outcome.metrics;
  const Interval of_step = interval_of(rows);
  metrics.step_time = step.total();
  metrics.step_time_low = of_step.low;
  metrics.step_time_high = of_step.high;
  Breakdown kernels;
  for (const KernelRow& row : rows) kernels.add(row, steps);
  outcome.kernels = std::move(kernels).take();
  StepTime all;
  all.device.add(step.device, steps);
  all.host.add(step.host, steps);
  all.saved.add(step.saved, steps);
  report_images(scenario, all, scenario.denoise.batch, outcome);
}

std::string denoise_headline(const Scenario& scenario) {
  const DenoiseShape& images = scenario.denoise;
  return fmt::format("{} image(s) of {} tokens and {} of text, {} steps of {} pass(es)\n",
                     images.batch, images.tokens, images.text, images.steps, images.passes);
}

}  // namespace engine
