#include "engine/tasks/train/train_task.h"

#include <fmt/core.h>

#include <utility>

#include "engine/feasibility.h"
#include "engine/kernels/gemm.h"
#include "engine/step/interval.h"
#include "engine/tasks/report_price.h"
#include "engine/training/train_step.h"

namespace engine {
namespace {

std::string in_gb(Bytes bytes) { return fmt::format("{:.2f} GB", bytes.value / 1e9); }

void report_memory(const TrainStepTime& step, const Device& device, Metrics& metrics) {
  const TrainMemory& memory = step.memory;
  metrics.weights = memory.weights;
  metrics.activations = memory.activations + memory.logits;
  metrics.reserved = memory.reserved;
  metrics.memory_used = metrics.peak_memory = memory.total();
  metrics.gradient_memory = memory.gradients;
  metrics.optimizer_memory = memory.optimizer;
  metrics.kept_activation_memory = memory.activations;
  metrics.logit_memory = memory.logits;
  metrics.gathered_memory = memory.gathered;
  metrics.peak_stage = double(step.peak_stage);
  if (memory.total() <= device.memory_capacity) {
    metrics.memory_free = device.memory_capacity - memory.total();
  }
}

std::optional<Refusal> memory_problem(const TrainStepTime& step, const Device& device) {
  const TrainMemory& memory = step.memory;
  if (memory.total() <= device.memory_capacity) return std::nullopt;
  return Refusal{
      ReasonClass::memory,
      fmt::format("stage {} does not fit: weights {}, gradients {}, optimizer {}, activations {}, "
                  "logits {} and the rest {} exceed {} by {}",
                  step.peak_stage, in_gb(memory.weights), in_gb(memory.gradients),
                  in_gb(memory.optimizer), in_gb(memory.activations), in_gb(memory.logits),
                  in_gb(memory.gathered + memory.reserved), in_gb(device.memory_capacity),
                  in_gb(memory.total() - device.memory_capacity))};
}

void report_times(const Scenario& scenario, const TrainStepTime& step, Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  metrics.iteration_time = step.iteration;
  metrics.forward_time = step.forward;
  metrics.backward_time = step.backward;
  metrics.recompute_time = step.recompute;
  metrics.optimizer_time = step.optimizer;
  metrics.bubble_time = step.bubble;
  metrics.bubble_share = step.bubble / (step.forward + step.backward + step.bubble);
  metrics.replica_exposed_time = step.exposed;
  metrics.replica_hidden_time = step.hidden;
  metrics.compute_time = step.device.compute.exposed();
  metrics.attention_time = step.device.attention.exposed();
  metrics.communication_time = step.device.communication.exposed() + step.exposed;
  const double tokens = double(scenario.train.global_batch) * double(scenario.train.sequence);
  metrics.tokens_per_s = tokens / step.iteration.value;
  metrics.tokens_per_s_per_device = metrics.tokens_per_s / metrics.devices;
  metrics.total = TokensPerSecond{metrics.tokens_per_s};
  metrics.per_device = metrics.total / metrics.devices;
  const Dtype dtype = compute_dtype(scenario.quant.weights, scenario.quant.activations);
  const FlopsPerSecond peak = matrix_peak(scenario.device, dtype) * metrics.devices;
  metrics.model_flops_utilization = step.model_flops / step.iteration / peak;
  metrics.hardware_flops_utilization = step.device_flops / step.iteration / peak;
  outcome.bound = step.saved.largest();
  outcome.tier = step.device.tier;
  outcome.extrapolated = step.device.extrapolated;
}

void report_run(const Scenario& scenario, Metrics& metrics) {
  metrics.output = TokensPerSecond{0};
  report_price(scenario, metrics.total, metrics);
  metrics.output = TokensPerSecond{kNoValue};
  if (!(scenario.train.tokens > 0)) return;
  metrics.run_time = Seconds{scenario.train.tokens / metrics.tokens_per_s};
  metrics.run_price_usd = metrics.rent.value * metrics.run_time.value;
}

}  // namespace

std::optional<Refusal> train_task_problem(const Scenario& scenario) {
  if (auto problem = too_long("train.sequence", scenario.train.sequence, scenario.model)) {
    return problem;
  }
  return train_problem(scenario.model, scenario.parallel, scenario.train);
}

void run_train(const TaskPoint& point, Outcome& outcome) {
  const Scenario& scenario = point.scenario;
  // Nothing is cached or sampled.
  Deployed main = point.main;
  main.shard.quant.kv = main.shard.dense.kv = Dtype::bf16;
  main.shard.sampling = Sampling::greedy;
  main.shard.two_halves = false;
  Breakdown rows;
  const TrainStepTime step = train_step_time(main.context(point.work), scenario.train, rows);
  report_memory(step, scenario.device, outcome.metrics);
  if (auto problem = memory_problem(step, scenario.device)) {
    return outcome.refuse(std::move(*problem));
  }
  outcome.kernels = std::move(rows).take();
  report_times(scenario, step, outcome);
  report_run(scenario, outcome.metrics);
}

std::string train_headline(const Scenario& scenario) {
  const TrainSettings& train = scenario.train;
  return fmt::format("one training step: {} sequences of {} tokens, micro-batches of {}\n",
                     train.global_batch, train.sequence, train.micro_batch);
}

}  // namespace engine
