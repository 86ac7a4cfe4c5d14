#include "engine/training/train_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "engine/training/pipeline_schedule.h"
#include "engine/training/replica_traffic.h"
#include "engine/training/stages.h"
#include "engine/training/state_bytes.h"
#include "engine/training/train_ops.h"

namespace engine {
namespace {

// A fused AdamW (PyTorch 2.11 on an H200, 0.4 to 8 billion weights) takes as long as so many plain passes over what it
// reads and writes.
constexpr double kOptimizerPasses = 1.72;

// The passes of one micro-batch through one chunk.
struct ChunkPasses {
  DeviceTime forward, recomputed, inputs, weights;
  Seconds forward_time, recompute_time, inputs_time, weights_time;
  // Of these: they wait for weights or gradients of other replicas; and traffic that passes beside them.
  Seconds waiting, hidden;

  Seconds backward_time() const { return recompute_time + inputs_time + weights_time; }
};

// The device cannot run ahead of the launches.
Seconds pass_time(const DeviceTime& device, const HostSettings& host) {
  const double launches = device.launches();
  const Seconds launching = host.launch_cost * launches;
  return std::max(device.total() + host.kernel_gap * launches, launching);
}

class TrainStep {
 public:
  TrainStep(const StepContext& context, const TrainSettings& train)
      : context_(context), train_(train), parallel_(context.shard.parallel) {
    chunks_per_stage_ = train.schedule == Schedule::interleaved ? train.virtual_stages : 1;
    micro_batches_ = train.global_batch / (train.micro_batch * parallel_.dp);
    cut_into_chunks(*context.shard.model, parallel_.pp * chunks_per_stage_, spans_);
    passes_.reserve(spans_.size());
    for (std::size_t c = 0; c < spans_.size(); ++c) passes_.push_back(passes_of(c));
  }

  TrainStepTime run(Breakdown& rows) {
    const Pipeline pipeline = pipeline_of();
    const PipelineTime time = pipeline_time(pipeline);
    const std::size_t stage = busiest_stage();
    TrainStepTime step;
    const double count = double(micro_batches_);
    for (std::size_t c = stage; c < spans_.size(); c += std::size_t(parallel_.pp)) {
      const ChunkPasses& passes = passes_[c];
      step.forward += passes.forward_time * count;
      step.recompute += passes.recompute_time * count;
      step.backward += passes.backward_time() * count;
      for (const DeviceTime* part :
           {&passes.forward, &passes.recomputed, &passes.inputs, &passes.weights}) {
        step.device.add(*part, count);
      }
      add_rows(c, count, rows);
    }
    step.bubble = std::max(Seconds{0}, time.total - step.forward - step.backward);
    const Seconds optimizer = optimizer_time(stage, rows);
    step.optimizer = optimizer;
    add_traffic(stage, step, rows);
    step.iteration = time.total + step.optimizer + step.exposed;
    for (std::size_t c = stage; c < spans_.size(); c += std::size_t(parallel_.pp)) {
      step.exposed += passes_[c].waiting * count;
      step.hidden += passes_[c].hidden * count;
    }
    add_memory(pipeline, step);
    add_flops(step);
    step.saved = step.device.saved();
    step.saved[Bound::network] += step.exposed;
    return step;
  }

 private:
  // Chunks with the same layers take the same time: all but the ends, as a rule.
  ChunkPasses passes_of(std::size_t chunk) {
    const StageSpan& span = spans_[chunk];
    for (std::size_t c = 0; c < chunk; ++c) {
      const StageSpan& other = spans_[c];
      if (other.layers == span.layers && other.first == span.first && other.last == span.last) {
        return passes_[c];
      }
    }
    context_.charge(kWorkOfAStep);
    pass_ops(context_.shard, span, train_, ops_);
    ChunkPasses passes;
    passes.forward = device_time(ops_.forward, context_, Phase::forward, nullptr);
    passes.recomputed = device_time(ops_.recomputed, context_, Phase::recompute, nullptr);
    passes.inputs = device_time(ops_.inputs, context_, Phase::backward, nullptr);
    passes.weights = device_time(ops_.weights, context_, Phase::backward, nullptr);
    passes.forward_time = pass_time(passes.forward, context_.host);
    passes.recompute_time = pass_time(passes.recomputed, context_.host);
    passes.inputs_time = pass_time(passes.inputs, context_.host);
    passes.weights_time = pass_time(passes.weights, context_.host);
    with_gathers(span, passes);
    return passes;
  }

  // Weights that replicas share out are gathered for each pass, and gradients scattered after it.
  void with_gathers(const StageSpan& span, ChunkPasses& passes) const {
    if (train_.zero < 3) return;
    const ReplicaTraffic traffic = replica_traffic(context_, span, train_);
    const auto go_beside = [&](Seconds takes, Seconds& work) {
      const Seconds exposed =
          exposed_traffic(work, takes, double(span.layers.all()), train_.overlap, context_.device);
      work += exposed;
      passes.waiting += exposed;
      passes.hidden += takes - std::min(takes, exposed);
    };
    go_beside(traffic.gather, passes.forward_time);
    go_beside(traffic.gather + traffic.scatter, passes.inputs_time);
  }

  Pipeline pipeline_of() {
    const bool put_off = train_.schedule == Schedule::zero_bubble;
    times_.clear();
    for (const ChunkPasses& passes : passes_) {
      times_.push_back(
          {passes.forward_time,
           put_off ? passes.recompute_time + passes.inputs_time : passes.backward_time(),
           put_off ? passes.weights_time : Seconds{0}});
    }
    Pipeline pipeline{.schedule = train_.schedule,
                      .stages = parallel_.pp,
                      .micro_batches = micro_batches_,
                      .chunks = times_};
    if (parallel_.pp > 1) pipeline.send = send_time(context_, train_);
    return pipeline;
  }

  std::size_t busiest_stage() const {
    std::size_t busiest = 0;
    Seconds most;
    for (std::size_t stage = 0; stage < std::size_t(parallel_.pp); ++stage) {
      Seconds busy;
      for (std::size_t c = stage; c < passes_.size(); c += std::size_t(parallel_.pp)) {
        busy += passes_[c].forward_time + passes_[c].backward_time();
      }
      if (busy > most) {
        most = busy;
        busiest = stage;
      }
    }
    return busiest;
  }

  void add_rows(std::size_t chunk, double count, Breakdown& rows) {
    pass_ops(context_.shard, spans_[chunk], train_, ops_);
    const auto add = [&](const OpList& ops, Phase phase) {
      row_scratch_.clear();
      device_time(ops, context_, phase, &row_scratch_);
      for (const KernelRow& row : row_scratch_) rows.add(row, count);
    };
    add(ops_.forward, Phase::forward);
    add(ops_.recomputed, Phase::recompute);
    add(ops_.inputs, Phase::backward);
    add(ops_.weights, Phase::backward);
  }

  double stage_weights(std::size_t stage) const {
    double weights = 0;
    for (std::size_t c = stage; c < spans_.size(); c += std::size_t(parallel_.pp)) {
      const ChunkWeights chunk = chunk_weights(context_.shard, spans_[c]);
      const StateSharing replicas = replicas_of(parallel_);
      weights += train_.zero > 0 ? chunk.dense / replicas.dense + chunk.experts / replicas.experts
                                 : chunk.total();
    }
    return weights;
  }

  Seconds optimizer_time(std::size_t stage, Breakdown& rows) {
    const double bytes =
        kOptimizerPasses * stage_weights(stage) * optimizer_traffic(state_bytes(train_));
    OpList ops;
    ops.add(OpName::optimizer, Family::residual, 1,
            Elementwise{.rows = 1, .resident_bytes = 0, .cold_bytes = bytes, .flops = 0});
    row_scratch_.clear();
    const DeviceTime time = device_time(ops, context_, Phase::optimizer, &row_scratch_);
    for (const KernelRow& row : row_scratch_) rows.add(row);
    return time.total();
  }

  // Gradients travel behind the last backward pass, and updated weights ahead of the first forward pass.
  void add_traffic(std::size_t stage, TrainStepTime& step, Breakdown& rows) {
    if (parallel_.dp * parallel_.cp == 1) return;
    for (std::size_t c = stage; c < spans_.size(); c += std::size_t(parallel_.pp)) {
      const ReplicaTraffic traffic = replica_traffic(context_, spans_[c], train_);
      const double layers = double(spans_[c].layers.all());
      const auto wait = [&](Seconds work, Seconds takes) {
        const Seconds exposed =
            exposed_traffic(work, takes, layers, train_.overlap, context_.device);
        step.exposed += exposed;
        step.hidden += takes - std::min(takes, exposed);
      };
      if (train_.zero < 3) {
        wait(passes_[c].backward_time(), traffic.scatter);
        if (train_.zero > 0) wait(passes_[c].forward_time, traffic.gather);
      }
      for (const KernelRow& row : traffic.rows)
        rows.add(row, train_.zero < 3 ? 1 : double(micro_batches_));
    }
  }

  void add_memory(const Pipeline& pipeline, TrainStepTime& step) const {
    Bytes most{-1};
    for (std::int64_t stage = 0; stage < parallel_.pp; ++stage) {
      TrainMemory sum;
      const double held = double(passes_held(pipeline, stage)) / double(chunks_per_stage_);
      for (std::size_t c = std::size_t(stage); c < spans_.size(); c += std::size_t(parallel_.pp)) {
        const TrainMemory chunk = chunk_memory(context_.shard, {spans_[c], held}, train_);
        sum.weights += chunk.weights;
        sum.gradients += chunk.gradients;
        sum.optimizer += chunk.optimizer;
        sum.activations += chunk.activations;
        sum.logits += chunk.logits;
        sum.gathered = std::max(sum.gathered, chunk.gathered);
      }
      sum.reserved = train_.reserved_memory;
      if (sum.total() <= most) continue;
      most = sum.total();
      step.memory = sum;
      step.peak_stage = stage;
    }
  }

  void add_flops(TrainStepTime& step) const {
    Flops once, done;
    for (const ChunkPasses& passes : passes_) {
      once += passes.forward.flops() + passes.inputs.flops() + passes.weights.flops();
      done += passes.forward.flops() + passes.recomputed.flops() + passes.inputs.flops() +
              passes.weights.flops();
    }
    const double passes = double(micro_batches_ * parallel_.tp * parallel_.dp * parallel_.cp);
    step.model_flops = once * passes;
    step.device_flops = done * passes;
  }

  const StepContext& context_;
  const TrainSettings& train_;
  const Parallelism& parallel_;
  std::int64_t chunks_per_stage_ = 1;
  std::int64_t micro_batches_ = 1;
  std::vector<StageSpan> spans_;
  std::vector<ChunkPasses> passes_;
  std::vector<ChunkTime> times_;
  PassOps ops_;
  std::vector<KernelRow> row_scratch_;
};

Refusal refused(std::string why) { return {ReasonClass::divisibility, std::move(why)}; }

}  // namespace

std::optional<Refusal> train_problem(const ModelSpec& model, const Parallelism& parallel,
                                     const TrainSettings& train) {
  const std::int64_t pass = train.micro_batch * parallel.dp;
  if (train.global_batch % pass != 0) {
    return refused(
        fmt::format("train.global_batch {} is not a multiple of train.micro_batch x "
                    "parallel.dp ({})",
                    train.global_batch, pass));
  }
  const bool interleaved = train.schedule == Schedule::interleaved;
  if (!interleaved && train.virtual_stages > 1) {
    return refused("train.virtual_stages needs train.schedule: interleaved");
  }
  const std::int64_t chunks = parallel.pp * (interleaved ? train.virtual_stages : 1);
  if (chunks > model.layers) {
    return refused(
        fmt::format("{} chunks of layers (parallel.pp x train.virtual_stages) exceed "
                    "model.layers {}",
                    chunks, model.layers));
  }
  const std::int64_t micro_batches = train.global_batch / pass;
  if (interleaved && micro_batches % parallel.pp != 0) {
    return refused(
        fmt::format("the interleaved schedule needs a multiple of parallel.pp {} "
                    "micro-batches; there are {}",
                    parallel.pp, micro_batches));
  }
  if (train.sequence_parallel && train.sequence % parallel.tp != 0) {
    return refused(fmt::format("train.sequence {} cannot be split {} ways (parallel.tp)",
                               train.sequence, parallel.tp));
  }
  return std::nullopt;
}

TrainStepTime train_step_time(const StepContext& context, const TrainSettings& train,
                              Breakdown& rows) {
  return TrainStep(context, train).run(rows);
}

}  // namespace engine
