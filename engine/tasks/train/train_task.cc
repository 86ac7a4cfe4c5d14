#include "engine/tasks/train/train_task.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/calibration/parameter_set.h"
#include "engine/chosen_calibration.h"
#include "engine/comm/links_needed.h"
#include "engine/feasibility.h"
#include "engine/kernels/peak_in_use.h"
#include "engine/kernels/power.h"
#include "engine/memory/footprint.h"
#include "engine/point_log.h"
#include "engine/step/interval.h"
#include "engine/tasks/train/attention_pace.h"
#include "engine/tasks/train/memory_problem.h"
#include "engine/tasks/train/rollout.h"
#include "engine/tasks/train/rollout_report.h"
#include "engine/tasks/train/run_report.h"
#include "engine/training/train_problem.h"
#include "engine/training/train_step.h"

namespace engine {
namespace {

void report_memory(const TrainStepTime& step, Metrics& metrics) {
  const TrainMemory& memory = step.memory;
  metrics.weights = memory.weights;
  metrics.activations = memory.activations + memory.at_work + memory.logits;
  metrics.reserved = memory.reserved;
  metrics.memory_used = metrics.peak_memory = memory.total();
  metrics.gradient_memory = memory.gradients;
  metrics.optimizer_memory = memory.optimizer;
  metrics.kept_activation_memory = memory.activations + memory.at_work;
  metrics.logit_memory = memory.logits;
  metrics.gathered_memory = memory.gathered;
  metrics.context_memory = memory.context;
  if (memory.reference.value > 0) metrics.reference_memory = memory.reference;
  if (memory.host.value > 0) metrics.host_memory = memory.host;
  metrics.peak_stage = double(step.peak_stage);
  if (memory.total() <= step.capacity) metrics.memory_free = step.capacity - memory.total();
}

// Peak of all devices, those that make samples included, in the format of their products.
FlopsPerSecond all_peaks(const Scenario& scenario) {
  FlopsPerSecond sum;
  const Deployment& samples = scenario.rollout.deployment;
  each_deployment(scenario, [&](const Deployment& on, double devices) {
    const Quantization quant =
        &on == &samples ? on.quant : multiplied(on.quant, scenario.train.method);
    sum += peak_in_use(on.device, quant) * devices;
  });
  return sum;
}

void report_times(const Scenario& scenario, const TrainStepTime& step, Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  metrics.iteration_time = step.iteration;
  metrics.trained_parameters =
      scenario.train.method == Method::full ? metrics.parameters : step.trained_weights;
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
  metrics.host_time = step.host;
  metrics.gap_time = step.gaps;
  const TrainSettings& train = scenario.train;
  const bool loads = train.loading.sequence_time.value > 0 && !train.rollout.any();
  if (loads) metrics.loading_time = step.loading;
  const double tokens = double(train.global_batch) * double(train.sequence);
  metrics.tokens_per_s = tokens / step.iteration.value;
  metrics.tokens_per_s_per_device = metrics.tokens_per_s / metrics.devices;
  metrics.total = TokensPerSecond{metrics.tokens_per_s};
  metrics.per_device = metrics.total / metrics.devices;
  const FlopsPerSecond peak = all_peaks(scenario);
  metrics.model_flops_utilization = step.model_flops / step.iteration / peak;
  metrics.hardware_flops_utilization = step.device_flops / step.iteration / peak;
  outcome.bound = step.saved.largest();
  outcome.tier = step.device.tier;
  outcome.extrapolated = step.device.extrapolated;
}

// What the rows of one device of the busiest stage spend on what.
enum class Purpose : std::uint8_t { other, tensor, context, expert, cast, offload };
Purpose purpose_of(OpName name) {
  switch (name) {
    case OpName::attention_reduce:
    case OpName::mlp_reduce:
    case OpName::logits_gather:
      return Purpose::tensor;
    case OpName::context_exchange:
      return Purpose::context;
    case OpName::expert_dispatch:
    case OpName::expert_combine:
      return Purpose::expert;
    case OpName::quantize_input:
    case OpName::quantize_attention:
    case OpName::quantize_mlp:
    case OpName::quantize_experts:
    case OpName::quantize_gradient:
    case OpName::cast_transpose:
    case OpName::dequantize:
      return Purpose::cast;
    case OpName::activation_offload:
    case OpName::activation_upload:
      return Purpose::offload;
    default:
      return Purpose::other;
  }
}

void report_purposes(const Scenario& scenario, const TrainStepTime& step, Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  std::array<Work, 6> sums;
  Joules energy;
  Seconds timed, at_rest = step.bubble;
  for (const KernelRow& row : outcome.kernels) {
    sums[std::size_t(purpose_of(row.op))].add(row.work);
    energy += row.work.energy;
    timed += row.work.exposed();
    if (row.family == Family::host || row.family == Family::gap) at_rest += row.work.exposed();
  }
  const auto sum = [&](Purpose purpose) -> const Work& { return sums[std::size_t(purpose)]; };
  metrics.tensor_exchange_time = sum(Purpose::tensor).exposed();
  metrics.context_exchange_time = sum(Purpose::context).exposed();
  metrics.context_hidden_time = sum(Purpose::context).hidden;
  metrics.expert_exchange_time = sum(Purpose::expert).exposed();
  metrics.cast_time = sum(Purpose::cast).exposed();
  if (scenario.train.offload_activations) {
    metrics.offload_exposed_time = sum(Purpose::offload).exposed();
    metrics.offload_hidden_time = sum(Purpose::offload).hidden;
  }
  const Interval kernels = interval_of(outcome.kernels);
  // What stages and replicas wait for one another grows and shrinks with their kernels.
  metrics.iteration_time_low = step.iteration * (kernels.low / timed);
  metrics.iteration_time_high = step.iteration * (kernels.high / timed);
  // The rows are of one device; others draw something else.
  if (energy.value <= 0 || scenario.tail.present) return;
  energy += power_at_rest(scenario.device) * at_rest;
  metrics.iteration_energy = energy * metrics.devices;
}

// Samples that cannot be made; or a simulation of them that broke off.
void refuse_samples(const Refusal& problem, Outcome& outcome) {
  const ReasonClass why = problem.reason_class;
  if (why == ReasonClass::budget || why == ReasonClass::figures || why == ReasonClass::error) {
    return outcome.refuse(Status::failed, problem);
  }
  outcome.refuse(problem);
}

// Samples are there when they are made. They are packed into sequences, and see themselves only.
TrainSettings trained_on(const TaskPoint& point) {
  TrainSettings train = point.scenario.train;
  if (!train.rollout.any()) return train;
  train.loading = {};
  if (train.document_length > 0) return train;
  train.document_length = std::max<std::int64_t>(1, std::llround(sample_length(point)));
  return train;
}

// Blocks have scales of rows or of columns, and are cast for both at once. One scale is good for either layout, which units of
// Blackwell take and earlier ones do not (Transformer Engine transposes for those; elsewhere nobody said).
NarrowTurn narrow_turn_of(const Device& device, const Quantization& quant) {
  if (quant.group <= kLargestBlock) return NarrowTurn::in_the_cast;
  return choose_set(device) == ParameterSet::blackwell ? NarrowTurn::never : NarrowTurn::apart;
}

// Nothing is cached or sampled, and kernels and collectives are not those of an inference engine, which a rollout may have.
std::optional<Refusal> make_trainable(const TaskPoint& point, Deployed& deployed) {
  const TrainSettings& train = point.scenario.train;
  CalibrationWish wish = calibration_wish(point.scenario.calibration, *deployed.spec);
  wish.engine = {};
  deployed.calibration =
      choose_calibration(wish, deployed.spec->device, point.resources.calibrations).calibration;
  ModelShard& shard = deployed.shard;
  shard.all_reduce = AllReduce::nccl;
  shard.normed_sums = shard.experts_quantize = false;
  shard.quant.kv = shard.dense.kv = shard.mixers.kv = Dtype::bf16;
  shard.sampling = Sampling::greedy;
  shard.two_halves = false;
  shard.expert_travel = ExpertTravel::automatic;
  shard.narrow_exchange = true;
  shard.narrow_outputs = NarrowOutputs::none;
  shard.narrow_turn = narrow_turn_of(deployed.spec->device, shard.quant);
  shard.shared_prompts = {};
  return set_attention_pace(train.attention_kernel, deployed.spec->device, shard);
}

// Passes of training are many kernels at one clock.
StepContext training_context(const Deployed& deployed, WorkMeter& work) {
  StepContext context = deployed.context(work);
  context.power_limit = PowerLimit::passes;
  return context;
}

// By how much a step takes longer where every collective takes as long as over the slowest of its links. Work hides of that what it
// can, so that no device that computes faster takes longer.
Seconds behind_slow_links(const TaskPoint& point, const StagePools& pools, double devices,
                          Seconds step) {
  const TrainSettings& train = point.scenario.train;
  if (train.link_jitter <= 0) return Seconds{0};
  StepContext main = pools.main;
  main.links_longer = slowest_link(train, devices);
  std::optional<StepContext> tail;
  if (pools.tail != nullptr) tail.emplace(*pools.tail).links_longer = main.links_longer;
  Breakdown nobody_looks;
  point.scratch.training().passes = nullptr;
  return train_step_time({main, tail ? &*tail : nullptr}, trained_on(point),
                         point.scratch.training(), nobody_looks)
             .iteration -
         step;
}

// Exposed time over all optimizer steps of an iteration. Where samples are made meanwhile and take longer, they hide some of it.
Seconds in_an_iteration(Seconds behind, Seconds step, const TrainSettings& train,
                        const Metrics& metrics) {
  if (!train.rollout.any()) return behind;
  const Seconds all = behind * (metrics.update_time / step);
  if (!train.rollout.asynchronous) return all;
  const Seconds trains = metrics.scoring_time + metrics.update_time;
  return std::max(Seconds{0}, all - std::max(Seconds{0}, metrics.rollout_time - trains));
}

// Trained weights are kept in 16 bits at least and cast as narrow as products take both sides.
std::optional<Refusal> format_problem(const Deployment& on, const TrainSettings& train) {
  const Quantization& quant = on.quant;
  const bool any_narrow = std::min(bytes_of(quant.weights), bytes_of(quant.activations)) < 2;
  if (any_narrow && quant.scope == QuantScope::mlps) {
    return Refusal{ReasonClass::unsupported,
                   "quant.scope mlps is not modelled in training: all or experts"};
  }
  const bool narrow = bytes_of(quant.weights) < bytes_of(quant.activations);
  if (narrow && !train.has_adapters()) {
    return Refusal{
        ReasonClass::unsupported,
        fmt::format("quant.weights {} are narrower than quant.activations {}: such weights "
                    "are frozen, and train.method {} trains them; state equal formats, or "
                    "train.method lora or qlora",
                    name_of(quant.weights), name_of(quant.activations), name_of(train.method))};
  }
  if (narrow && is_wide(quant.activations)) {
    return Refusal{
        ReasonClass::unsupported,
        fmt::format("quant.activations {} beside frozen weights in {}: activations in 32 bits are "
                    "modelled beside weights in 32 bits only; state quant.activations: bf16",
                    name_of(quant.activations), name_of(quant.weights))};
  }
  return arithmetic_problem(on.device, multiplied(quant, train.method));
}

}  // namespace

std::optional<Refusal> train_task_problem(const Scenario& scenario) {
  if (auto problem = too_long("train.sequence", scenario.train.sequence, scenario.model)) {
    return problem;
  }
  if (auto problem = tail_problem(scenario)) return problem;
  if (auto problem =
          train_problem(scenario.model, layout_of_all_stages(scenario), scenario.train)) {
    return problem;
  }
  if (auto problem = format_problem(scenario, scenario.train)) return problem;
  if (scenario.tail.present) {
    if (auto problem = format_problem(scenario.tail.deployment, scenario.train)) {
      return in_role("tail", std::move(*problem));
    }
  }
  if (auto problem = rollout_problem(scenario)) return problem;
  const TrainSettings& train = scenario.train;
  if ((train.offload_activations || train.offload_optimizer) &&
      scenario.device.host_link.bandwidth.value <= 0) {
    return Refusal{
        ReasonClass::links,
        fmt::format("train.{} needs a link to the host: state device.host_link",
                    train.offload_activations ? "offload_activations" : "offload_optimizer")};
  }
  // Unlike replicas that serve, those that train talk to one another.
  return links_problem(TalkingDevices{scenario.parallel.devices(), "all replicas together are "},
                       fabric_of(scenario.cluster, scenario.device));
}

void run_train(const TaskPoint& point, Outcome& outcome) {
  const Scenario& scenario = point.scenario;
  Deployed main = point.main;
  if (auto problem = make_trainable(point, main)) {
    return outcome.refuse(std::move(*problem));
  }
  std::optional<TailStages> tail;
  std::optional<StepContext> on_tail;
  if (scenario.tail.present) {
    if (auto problem = deploy_tail(point, tail.emplace())) {
      return outcome.refuse(std::move(*problem));
    }
    if (auto problem = make_trainable(point, tail->deployed)) {
      return outcome.refuse(in_role("tail", std::move(*problem)));
    }
    on_tail.emplace(training_context(tail->deployed, point.work));
  }
  const StepContext on_main = training_context(main, point.work);
  Breakdown rows;
  PointLog* log = point.scratch.log();
  point.scratch.training().passes = log != nullptr ? &log->passes : nullptr;
  const StagePools pools{on_main, on_tail ? &*on_tail : nullptr};
  const TrainStepTime step =
      train_step_time(pools, trained_on(point), point.scratch.training(), rows);
  report_memory(step, outcome.metrics);
  if (auto problem = memory_problem(step, scenario.train)) {
    return outcome.refuse(std::move(*problem));
  }
  SampledIteration sampled;
  const bool samples = scenario.train.rollout.any();
  if (samples) {
    if (auto problem = sample(point, step, sampled)) return refuse_samples(*problem, outcome);
  }
  outcome.kernels = std::move(rows).take();
  report_times(scenario, step, outcome);
  report_purposes(scenario, step, outcome);
  if (samples) report_rollout(point, step, sampled, outcome);
  const Seconds behind = behind_slow_links(point, pools, outcome.metrics.devices, step.iteration);
  report_run(scenario, step,
             in_an_iteration(behind, step.iteration, scenario.train, outcome.metrics),
             outcome.metrics);
}

std::string train_headline(const Scenario& scenario) {
  const TrainSettings& train = scenario.train;
  return fmt::format("one training step: {} sequences of {} tokens, micro-batches of {}\n",
                     train.global_batch, train.sequence, train.micro_batch);
}

}  // namespace engine
