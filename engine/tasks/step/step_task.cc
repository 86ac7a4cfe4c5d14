#include "engine/tasks/step/step_task.h"

#include <fmt/core.h>

#include <utility>

#include "engine/feasibility.h"
#include "engine/step/interval.h"
#include "engine/step/step_time.h"

namespace engine {
namespace {

std::optional<Refusal> decode_problem(const StepShape& step, const ModelSpec& model) {
  if (auto problem = too_long("step.context", step.context, model)) return problem;
  const std::int64_t longest = step.longest_context;
  if (longest == 0) return std::nullopt;
  const auto contradiction = [](std::string text) {
    return Refusal{ReasonClass::context, std::move(text)};
  };
  if (longest < step.context) {
    return contradiction(
        fmt::format("step.longest_context ({}) is less than step.context, the mean ({})", longest,
                    step.context));
  }
  // The others have at least a token each.
  const std::int64_t most = step.batch * (step.context - 1) + 1;
  if (longest > most) {
    return contradiction(
        fmt::format("step.longest_context ({}) is more than {} sequences of {} tokens on average "
                    "allow ({})",
                    longest, step.batch, step.context, most));
  }
  return too_long("step.longest_context", longest, model);
}

}  // namespace

std::optional<Refusal> step_problem(const Scenario& scenario) {
  const StepShape& step = scenario.step;
  if (step.phase == StepPhase::decode) return decode_problem(step, scenario.model);
  return too_long("step.cached + step.prompt", step.cached + step.prompt, scenario.model);
}

MemoryDemand step_demand(const Scenario& scenario, const Resources&, Scratch&) {
  const StepShape& step = scenario.step;
  if (step.phase == StepPhase::decode) {
    return {.sequences = step.batch,
            .context = step.context,
            .step_tokens = step.batch,
            .sampled = step.batch};
  }
  return {.sequences = step.batch,
          .context = step.cached + step.prompt,
          .step_tokens = step.batch * step.prompt,
          .sampled = step.batch};
}

void run_step(const TaskPoint& point, Outcome& outcome) {
  const StepShape& step = point.scenario.step;
  const std::int64_t window = point.scenario.model.window;
  const bool decode = step.phase == StepPhase::decode;
  BatchShape batch;
  if (decode) {
    add_decode(batch, step.batch, step.context, window);
    if (step.longest_context > 0) batch.decode_longest = double(step.longest_context);
  } else {
    add_prefill(batch, step.batch, step.prompt, step.cached, window);
  }
  batch.sampled = step.batch;
  const StepTime time = step_time(batch, point.main.context(point.work),
                                  decode ? Phase::decode : Phase::prefill, &outcome.kernels);
  const Interval interval = interval_of(outcome.kernels);
  outcome.metrics.step_time = time.total();
  outcome.metrics.step_time_low = interval.low;
  outcome.metrics.step_time_high = interval.high;
  const double tokens = double(batch.tokens());
  report_time(point.scenario, time,
              {.prompt = decode ? 0 : tokens, .generated = double(step.batch), .all = tokens},
              outcome);
}

std::string step_headline(const Scenario& scenario) {
  const StepShape& step = scenario.step;
  if (step.phase == StepPhase::decode) {
    return fmt::format("one decode step: {} sequences of {} tokens\n", step.batch, step.context);
  }
  return fmt::format("one prefill step: {} sequences of {} new tokens after {} cached\n",
                     step.batch, step.prompt, step.cached);
}

}  // namespace engine
