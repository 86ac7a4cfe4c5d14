#include "engine/tasks/step/step_task.h"

#include <fmt/core.h>

#include <utility>

#include "engine/feasibility.h"
#include "engine/kernels/kernel_model.h"
#include "engine/step/interval.h"
#include "engine/step/step_time.h"
#include "engine/tasks/report_speculation.h"

namespace engine {
namespace {

std::optional<Refusal> decode_problem(const StepShape& step, std::int64_t tokens,
                                      const ModelSpec& model) {
  if (auto problem = too_long(tokens > 0 ? "step.context + speculation.tokens" : "step.context",
                              step.context + tokens, model))
    return problem;
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

std::optional<Refusal> adapter_problem(const StepShape& step, const LoraSettings& lora) {
  if (step.adapters > step.batch) {
    return Refusal{
        ReasonClass::load,
        fmt::format("step.adapters ({}) is more than step.batch ({}): a sequence has one "
                    "at most",
                    step.adapters, step.batch)};
  }
  if (lora.slots > 0 && step.adapters > lora.slots) {
    return Refusal{ReasonClass::memory,
                   fmt::format("step.adapters ({}) is more than serving.lora.slots ({})",
                               step.adapters, lora.slots)};
  }
  return std::nullopt;
}

void report_chip(const TaskPoint& point, const BatchShape& batch, Metrics& metrics) {
  const Device& device = point.scenario.device;
  const KernelModel& model = kernel_model(device);
  if (model.report == nullptr) return;
  OpList ops;
  step_ops(batch, point.main.context(point.work), ops);
  model.report(ops, device, metrics);
}

}  // namespace

std::optional<Refusal> step_problem(const Scenario& scenario) {
  const StepShape& step = scenario.step;
  if (auto problem = adapter_problem(step, scenario.serving.lora)) return problem;
  if (step.phase == StepPhase::decode) {
    return decode_problem(step, proposed_positions(scenario), scenario.model);
  }
  return too_long("step.cached + step.prompt", step.cached + step.prompt, scenario.model);
}

MemoryDemand step_demand(const Scenario& scenario, const Resources&, Scratch&) {
  const StepShape& step = scenario.step;
  if (step.phase == StepPhase::decode) {
    const std::int64_t proposed = proposed_tokens(scenario);
    const std::int64_t tokens = step.batch * (proposed + 1);
    return {.sequences = step.batch,
            .batches = scenario.parallel.pp,
            .context = step.context + proposed,
            .step_tokens = tokens,
            .sampled = tokens,
            .tokens_each = proposed + 1};
  }
  return {.sequences = step.batch,
          .batches = scenario.parallel.pp,
          .context = step.cached + step.prompt,
          .step_tokens = step.batch * step.prompt,
          .sampled = step.batch,
          .tokens_each = step.prompt};
}

void run_step(const TaskPoint& point, Outcome& outcome) {
  const StepShape& step = point.scenario.step;
  const std::int64_t window = point.scenario.model.window;
  const bool decode = step.phase == StepPhase::decode;
  BatchShape batch;
  if (decode) {
    add_decode(batch, step.batch, step.context, window);
    if (step.longest_context > 0) batch.decode_longest = double(step.longest_context);
    if (point.draft != nullptr) batch.decode_queries = point.draft->pace.queries;
  } else {
    add_prefill(batch, step.batch, step.prompt, step.cached, window);
  }
  batch.sampled = decode ? batch.decode_tokens() : step.batch;
  batch.adapters = step.adapters;
  StepTime time = step_time(batch, point.main.context(point.work),
                            decode ? Phase::decode : Phase::prefill, &outcome.kernels);
  report_chip(point, batch, outcome.metrics);
  const double made = double(step.batch) * (point.draft == nullptr ? 1 : point.draft->expected);
  TokenCounts tokens{.prompt = decode ? 0 : double(batch.tokens()),
                     .generated = made,
                     .all = decode ? made : double(batch.tokens())};
  const DeviceTime verified = time.device;
  StepTime proposed;
  if (point.draft != nullptr) {
    proposed = propose(
        point, {.sequences = step.batch, .context = step.context, .adapters = step.adapters},
        outcome.kernels);
    time.add(proposed);
  }
  Metrics& metrics = outcome.metrics;
  const Seconds waited = time.total() * (point.beside.slower - 1);
  add_wait_row(waited, 1, decode ? Phase::decode : Phase::prefill, outcome.kernels);
  time.neighbour = waited;
  const Interval interval = interval_of(outcome.kernels);
  metrics.step_time = time.total();
  metrics.step_time_low = interval.low;
  metrics.step_time_high = interval.high;
  tokens.in_flight = batches_in_flight(point, time.total(), proposed.total() * point.beside.slower);
  report_time(point.scenario, time, tokens, outcome);
  if (point.draft == nullptr) return;
  if (drafts_on_others(point)) {
    const DeploymentWork work[] = {{point.scenario, verified},
                                   {*point.draft->own, proposed.device, !point.draft->apart}};
    report_shared_work(work, {time.total(), tokens.in_flight}, metrics);
  }
  report_speculation({.proposed = double(point.draft->tokens),
                      .per_step = point.draft->expected,
                      .sequence_steps = double(step.batch),
                      .proposing = proposed.total(),
                      .decoding = time.total()},
                     metrics);
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
