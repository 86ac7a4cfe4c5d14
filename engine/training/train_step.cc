#include "engine/training/train_step.h"

#include <algorithm>
#include <vector>

#include "engine/training/chunk_kinds.h"
#include "engine/training/optimizer_step.h"
#include "engine/training/pipeline_schedule.h"
#include "engine/training/replica_traffic.h"
#include "engine/training/state_bytes.h"

namespace engine {
namespace {

std::int64_t chunks_per_stage_of(const TrainSettings& train) {
  return train.schedule == Schedule::interleaved ? train.virtual_stages : 1;
}

class TrainStep {
 public:
  TrainStep(const StepContext& context, const TrainSettings& train, TrainScratch& scratch)
      : context_(context),
        train_(train),
        parallel_(context.shard.parallel),
        chunks_per_stage_(chunks_per_stage_of(train)),
        micro_batches_(train.global_batch / (train.micro_batch * parallel_.dp)),
        chunks_(context, train, parallel_.pp * chunks_per_stage_, scratch),
        passes_(scratch.passes) {}

  TrainStepTime run(Breakdown& rows) {
    TrainStepTime step;
    add_memory(step);
    if (step.memory.total() > context_.device.memory_capacity) return step;
    chunks_.find_times();
    const Pipeline pipeline = pipeline_of();
    context_.charge(work_of(pipeline));
    const PipelineTime time = pipeline_time(pipeline);
    step.forward_alone = forward_alone(pipeline);
    if (passes_ != nullptr) pipeline_time_step_by_step(pipeline, passes_);
    const std::size_t stage = busiest_stage();
    add_passes(stage, step, rows);
    step.bubble = std::max(Seconds{0}, time.total - step.forward - step.backward);
    step.optimizer =
        optimizer_time({.weights = updated_weights(stage), .backward = last_backward(stage)},
                       train_, context_, rows);
    add_traffic(stage, step, rows);
    add_states(step);
    add_flops(step);
    step.iteration = time.total + step.optimizer + after_passes_;
    step.saved = step.device.saved();
    step.saved[Bound::network] += step.exposed;
    return step;
  }

 private:
  template <class Visit>
  void each_chunk(std::size_t stage, Visit&& visit) const {
    for (std::size_t c = stage; c < chunks_.size(); c += std::size_t(parallel_.pp)) visit(c);
  }

  Pipeline pipeline_of() {
    const bool put_off = train_.schedule == Schedule::zero_bubble && parallel_.pp > 1;
    times_.clear();
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const ChunkPasses& passes = chunks_[c].passes;
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

  Seconds forward_alone(const Pipeline& pipeline) const {
    Seconds through, slowest;
    for (std::size_t stage = 0; stage < std::size_t(parallel_.pp); ++stage) {
      Seconds forward;
      each_chunk(stage, [&](std::size_t c) { forward += chunks_[c].passes.forward_time; });
      through += forward;
      slowest = std::max(slowest, forward);
    }
    return through + slowest * double(micro_batches_ - 1) +
           pipeline.send * double(parallel_.pp - 1);
  }

  std::size_t busiest_stage() const {
    std::size_t busiest = 0;
    Seconds most;
    for (std::size_t stage = 0; stage < std::size_t(parallel_.pp); ++stage) {
      Seconds busy;
      each_chunk(stage, [&](std::size_t c) { busy += chunks_[c].passes.time(); });
      if (busy > most) {
        most = busy;
        busiest = stage;
      }
    }
    return busiest;
  }

  void add_passes(std::size_t stage, TrainStepTime& step, Breakdown& rows) {
    const double count = double(micro_batches_);
    each_chunk(stage, [&](std::size_t c) {
      const ChunkPasses& passes = chunks_[c].passes;
      step.forward += passes.forward_time * count;
      step.recompute += passes.recompute_time * count;
      step.backward += passes.backward_time() * count;
      step.exposed += passes.waiting * count;
      step.hidden += passes.hidden * count;
      for (const DeviceTime* part :
           {&passes.forward, &passes.recomputed, &passes.inputs, &passes.weights}) {
        step.device.add(*part, count);
      }
      chunks_.add_rows(c, count, rows);
    });
  }

  double updated_weights(std::size_t stage) const {
    const StateSharing replicas = sharers_of(parallel_, train_);
    double weights = 0;
    each_chunk(stage, [&](std::size_t c) {
      const ChunkWeights& trained = chunks_[c].states.trained;
      weights += train_.zero > 0
                     ? trained.dense / replicas.dense + trained.experts / replicas.experts
                     : trained.total();
    });
    return weights;
  }
  Seconds last_backward(std::size_t stage) const {
    Seconds time;
    each_chunk(stage, [&](std::size_t c) { time += chunks_[c].passes.backward_time(); });
    return time;
  }

  // Gradients travel behind the last backward pass, and updated weights ahead of the first forward pass; weights that are
  // shared out travel in every pass, whose time has it.
  void add_traffic(std::size_t stage, TrainStepTime& step, Breakdown& rows) {
    if (parallel_.dp * parallel_.cp == 1) return;
    each_chunk(stage, [&](std::size_t c) {
      const ChunkKind& kind = chunks_[c];
      ReplicaOps ops;
      replica_ops(parallel_, kind.states, train_, ops);
      if (train_.zero == 3) {
        const double gathers = kind.chunk.has_gradients() ? 2 : 1;
        const Seconds all = kind.gather * gathers + kind.scatter;
        const double hidden = all.value > 0 ? kind.passes.hidden / all : 0;
        add_rows(ops.gather, gathers * double(micro_batches_), hidden, rows);
        add_rows(ops.scatter, double(micro_batches_), hidden, rows);
        return;
      }
      add_rows(ops.scatter, 1, wait(kind, kind.passes.backward_time(), kind.scatter, step), rows);
      add_rows(ops.gather, 1, wait(kind, kind.passes.forward_time, kind.gather, step), rows);
    });
  }
  // Returns the share that work hides.
  double wait(const ChunkKind& kind, Seconds work, Seconds takes, TrainStepTime& step) {
    if (takes.value <= 0) return 0;
    const Seconds exposed = exposed_traffic(work, takes, double(kind.chunk.span.layers.all()),
                                            train_.overlap, context_.device);
    const Seconds hidden = takes - std::min(takes, exposed);
    after_passes_ += exposed;
    step.exposed += exposed;
    step.hidden += hidden;
    return hidden / takes;
  }
  void add_rows(const OpList& ops, double count, double hidden, Breakdown& rows) {
    row_scratch_.clear();
    device_time(ops, context_, Phase::gradients, &row_scratch_);
    for (KernelRow& row : row_scratch_) {
      row.work.hidden = row.work.time * hidden;
      row.work.low *= 1 - hidden;
      row.work.high *= 1 - hidden;
      rows.add(row, count);
    }
  }

  void add_memory(TrainStepTime& step) {
    times_.resize(chunks_.size());
    const Pipeline pipeline{.schedule = train_.schedule,
                            .stages = parallel_.pp,
                            .micro_batches = micro_batches_,
                            .chunks = times_};
    Bytes most{-1};
    for (std::int64_t stage = 0; stage < parallel_.pp; ++stage) {
      TrainMemory sum;
      const double held = double(passes_held(pipeline, stage)) / double(chunks_per_stage_);
      each_chunk(std::size_t(stage), [&](std::size_t c) {
        add_chunk(chunks_[c].memory, chunks_[c].activations, held, sum);
      });
      sum.reserved = train_.reserved_memory;
      if (sum.total() <= most) continue;
      most = sum.total();
      step.memory = sum;
      step.peak_stage = stage;
    }
  }

  void add_states(TrainStepTime& step) const {
    const double owners = double(std::max(parallel_.tp, parallel_.ep));
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const ChunkWeights& trained = chunks_[c].states.trained;
      step.trained_weights += trained.dense * double(parallel_.tp) + trained.experts * owners;
    }
    const StateBytes bytes = state_bytes(train_);
    step.checkpoint = Bytes{step.trained_weights * (bytes.weights + bytes.optimizer())};
  }

  void add_flops(TrainStepTime& step) const {
    Flops once, done;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      const ChunkPasses& passes = chunks_[c].passes;
      once += passes.forward.flops() + passes.inputs.flops() + passes.weights.flops();
      done += passes.recomputed.flops();
    }
    const double passes = double(micro_batches_ * parallel_.tp * parallel_.dp * parallel_.cp);
    step.model_flops = once * passes;
    step.device_flops = (once + done) * passes;
  }

  const StepContext& context_;
  const TrainSettings& train_;
  const Parallelism& parallel_;
  std::int64_t chunks_per_stage_ = 1;
  std::int64_t micro_batches_ = 1;
  ChunkKinds chunks_;
  std::vector<PipelinePass>* passes_;  // written down, where somebody looks
  std::vector<ChunkTime> times_;
  Seconds after_passes_;  // exposed traffic that is no part of a pass
  std::vector<KernelRow> row_scratch_;
};

}  // namespace

TrainStepTime train_step_time(const StepContext& context, const TrainSettings& train,
                              TrainScratch& scratch, Breakdown& rows) {
  return TrainStep(context, train, scratch).run(rows);
}

}  // namespace engine
