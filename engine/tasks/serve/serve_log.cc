#include "engine/tasks/serve/serve_log.h"

#include <algorithm>

#include "engine/step/step_time.h"

namespace engine {
namespace {

TracedStep at(const LoggedWork& work, Seconds start, Seconds end) {
  return {.role = work.role, .replica = work.replica, .start = start, .end = end};
}

void add_steps(const LoggedWork& work, std::vector<TracedStep>& steps) {
  Stretch stretch = work.stretch;
  stretch.pace = &work.pace;
  if (stretch.steps == 0) {
    steps.push_back(at(work, Seconds{work.start}, Seconds{work.end}));
    steps.back().batch = work.batch;
    return;
  }
  double begin = 0;
  for (std::int64_t i = 0; i < stretch.steps; ++i) {
    const double end = stretch.seconds(i + 1);
    TracedStep& step =
        steps.emplace_back(at(work, Seconds{work.start + begin}, Seconds{work.start + end}));
    const double made = stretch.tokens(double(i));
    step.batch.expert_tokens = work.batch.expert_tokens;
    step.batch.decode_sequences = step.batch.sampled = std::int64_t(stretch.sequences);
    step.batch.decode_kv_tokens = stretch.context + made * stretch.sequences;
    step.batch.decode_window_kv_tokens = stretch.window + made * stretch.growing;
    begin = end;
  }
}

void add_kernels(TracedStep& step, const PoolSetup& pool) {
  BatchShape batch = step.batch;
  batch.decode_queries = pool.pace.queries;
  const Phase phase = batch.prefill_sequences > 0 ? Phase::prefill : Phase::decode;
  step_time(batch, pool.context, phase, &step.kernels);
  for (const KernelRow& row : step.kernels) step.energy += row.work.energy;
}

}  // namespace

void trace_steps(const StepLog& work, std::span<const PoolSetup> pools, PointLog& log) {
  for (const LoggedWork& done : work.work) add_steps(done, log.steps);
  std::ranges::stable_sort(log.steps, {}, &TracedStep::start);
  if (log.steps.size() > log.most_steps) log.steps.resize(log.most_steps);
  for (std::size_t i = 0; i < log.steps.size(); ++i) {
    TracedStep& step = log.steps[i];
    const auto pool = std::ranges::find(pools, step.role, &PoolSetup::role);
    add_kernels(step, *pool);
    if (i >= log.most_with_kernels) step.kernels = {};
  }
}

}  // namespace engine
