#include "tools/trace/step_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "engine/kernels/power.h"
#include "tools/terminal/number_text.h"
#include "tools/trace/trace_tracks.h"

namespace tools {
namespace {

using engine::TracedStep;

std::string name_of_step(const engine::BatchShape& batch) {
  const std::string decodes = counted(std::uint64_t(batch.decode_sequences), "decode");
  if (batch.prefill_sequences == 0) return decodes;
  const std::string prompts = counted(std::uint64_t(batch.prefill_tokens), "prompt token");
  return batch.decode_sequences == 0 ? prompts : prompts + ", " + decodes;
}

// Kernels in the order in which they are listed, stretched to the time that the step took.
void add_kernels_of(const TracedStep& step, TraceTrack track, TraceEvents& events) {
  double whole = 0;
  for (const engine::KernelRow& row : step.kernels) whole += row.work.exposed().value;
  const double start = step.start.value, length = step.end.value - start;
  double done = 0;
  for (const engine::KernelRow& row : step.kernels) {
    const double begin = done;
    done = std::min(whole, done + row.work.exposed().value);
    events.slice(track, std::string(engine::name_of(row.op)),
                 std::string(engine::name_of(row.family)), start + length * (begin / whole),
                 start + length * (done / whole),
                 {{"calls", row.work.calls},
                  {"flops", row.work.flops.value},
                  {"bytes", row.work.bytes.value}});
  }
}

const engine::Deployment& deployment_of(const engine::Scenario& scenario,
                                        engine::DeploymentRole role) {
  return role == engine::DeploymentRole::prefill ? scenario.prefill.deployment
                                                 : static_cast<const engine::Deployment&>(scenario);
}

// What one device draws over time: steps add to what it draws at rest.
class PowerCurve {
 public:
  void add(const TracedStep& step, const engine::Deployment& on) {
    rest_ = engine::power_at_rest(on.device).value;
    const double seconds = step.end.value - step.start.value;
    if (step.energy.value <= 0 || seconds <= 0) return;
    // The batches in flight of a pipeline take turns on a device, and kernels are those of all stages.
    const double stages = double(on.parallel.pp);
    const double above = step.energy.value / stages / seconds - rest_ / stages;
    changes_[step.start.value] += above;
    changes_[step.end.value] -= above;
  }
  void write(std::int64_t process, TraceEvents& events) const {
    double above = 0;
    for (const auto& [time, change] : changes_) {
      above += change;
      events.counter(process, "power of one device", time, {{"W", std::max(0.0, rest_ + above)}});
    }
  }

 private:
  double rest_ = 0;
  std::map<double, double> changes_;
};

}  // namespace

void add_steps(const engine::PointLog& log, const engine::Scenario& scenario, TraceEvents& events) {
  std::map<std::int64_t, TraceLanes> lanes;
  std::map<std::int64_t, PowerCurve> powers;
  for (const TracedStep& step : log.steps) {
    const std::int64_t process = process_of(step.role, step.replica);
    const std::int64_t lane = lanes[process].lane(step.start.value, step.end.value);
    const TraceTrack track{process, lane};
    events.name_process(process, replica_name(step.role, step.replica));
    events.name_thread(track, "steps");
    events.slice(track, name_of_step(step.batch), "step", step.start.value, step.end.value,
                 {{"decodes", double(step.batch.decode_sequences)},
                  {"prompt_tokens", double(step.batch.prefill_tokens)},
                  {"decode_context_tokens", step.batch.decode_kv_tokens},
                  {"energy_of_one_device_j", step.energy.value}});
    if (!step.kernels.empty()) add_kernels_of(step, track, events);
    powers[process].add(step, deployment_of(scenario, step.role));
  }
  for (const auto& [process, power] : powers) power.write(process, events);
}

// Samples, scores and update one after another, or samples of the next iteration beside the others where all take less than
// their sum; weights go to those who sample at the end.
void add_phases(const engine::Metrics& metrics, TraceEvents& events) {
  const TraceTrack samples{kPhaseProcess, 1}, learning{kPhaseProcess, 2};
  events.name_process(kPhaseProcess, "iteration");
  events.name_thread(samples, "samples");
  events.name_thread(learning, "learning");
  const double iteration = metrics.iteration_time.value, rollout = metrics.rollout_time.value;
  const double scoring = metrics.scoring_time.value, update = metrics.update_time.value;
  const double transfer = metrics.weight_transfer_time.value;
  const bool beside = rollout + scoring + update + transfer > iteration * (1 + 1e-9);
  const double begin = beside ? 0 : rollout;
  events.slice(samples, "rollout", "rollout", 0, rollout);
  if (scoring > 0) events.slice(learning, "scoring", "scoring", begin, begin + scoring);
  events.slice(learning, "update", "update", begin + scoring, begin + scoring + update);
  if (transfer > 0)
    events.slice(learning, "transfer of weights", "network", iteration - transfer, iteration);
}

void add_passes(const engine::PointLog& log, const engine::Metrics& metrics, std::size_t most,
                TraceEvents& events) {
  std::set<std::int64_t> stages;
  double end = 0;
  for (std::size_t i = 0; i < log.passes.size(); ++i) {
    const engine::PipelinePass& pass = log.passes[i];
    stages.insert(pass.stage);
    end = std::max(end, pass.end.value);
    if (i >= most) continue;
    const TraceTrack track{kFirstStage + pass.stage, 1};
    events.slice(track, fmt::format("{} {}", engine::name_of(pass.kind), pass.micro_batch),
                 std::string(engine::name_of(pass.kind)), pass.start.value, pass.end.value,
                 {{"micro_batch", double(pass.micro_batch)}, {"chunk", double(pass.chunk)}});
  }
  // An iteration with samples has many such steps, and more than steps.
  const bool sampled = !std::isnan(metrics.rollout_time.value);
  const double optimizer = metrics.optimizer_time.value;
  const double iteration =
      sampled ? end + metrics.replica_exposed_time.value + optimizer : metrics.iteration_time.value;
  const double exchanged = std::max(end, iteration - optimizer);
  if (sampled) add_phases(metrics, events);
  for (const std::int64_t stage : stages) {
    const TraceTrack track{kFirstStage + stage, 1};
    events.name_process(track.process, fmt::format("pipeline stage {}", stage));
    events.name_thread(track, "passes");
    if (exchanged > end)
      events.slice(track, "exchange between replicas", "network", end, exchanged);
    if (iteration > exchanged) events.slice(track, "optimizer", "optimizer", exchanged, iteration);
  }
}

}  // namespace tools
