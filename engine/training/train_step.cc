#include "engine/training/train_step.h"

#include <algorithm>
#include <vector>

#include "engine/model/backward_ops.h"
#include "engine/training/chunk_kinds.h"
#include "engine/training/data_loading.h"
#include "engine/training/passes/newton_schulz.h"
#include "engine/training/passes/optimizer_step.h"
#include "engine/training/passes/state_bytes.h"
#include "engine/training/pipeline/pipeline_schedule.h"
#include "engine/training/replica_traffic.h"
#include "engine/training/train_pipeline.h"

namespace engine {
namespace {

class TrainStep {
 public:
  TrainStep(const StagePools& pools, const TrainSettings& train, TrainScratch& scratch)
      : pools_(pools),
        train_(train),
        parallel_(pools.main.shard.parallel),
        chunks_(pools, train, scratch),
        pipeline_(pools, train, chunks_),
        stages_(pipeline_.stages()),
        micro_batches_(pipeline_.micro_batches()),
        passes_(scratch.passes) {}

  TrainStepTime run(Breakdown& rows) {
    TrainStepTime step;
    add_memory(step);
    if (step.memory.total() > step.capacity) return step;
    chunks_.find_times();
    const Pipeline pipeline = pipeline_.timed();
    pools_.main.charge(work_of(pipeline));
    const PipelineTime time = pipeline_time(pipeline);
    step.forward_alone = pipeline_.forward_alone();
    if (passes_ != nullptr) pipeline_time_step_by_step(pipeline, passes_);
    const std::int64_t stage = busiest_stage();
    add_passes(stage, step, rows);
    step.optimizer = optimizer_time(update_of(stage), train_, context_of(stage), rows);
    const Seconds closing = traffic_after_passes(stage) + step.optimizer;
    // Weights are updated once all stages are through (the norm of all gradients limits them); some take longer for it.
    step.iteration = time.total + std::max(closing, longest_closing());
    step.bubble = std::max(Seconds{0}, step.iteration - closing - step.forward - step.backward);
    add_traffic(stage, step, rows);
    add_loading(step, rows);
    add_states(step);
    add_flops(step);
    step.saved = step.device.saved();
    step.saved[Bound::network] += step.exposed;
    step.saved[Bound::host] += step.host + step.gaps + step.copied +
                               (train_.offload_optimizer ? step.optimizer : Seconds{0});
    return step;
  }

 private:
  template <class Visit>
  void each_chunk(std::int64_t stage, Visit&& visit) const {
    pipeline_.places().each(stage, visit);
  }
  const StepContext& context_of(std::int64_t stage) const { return pools_.of(stage); }

  std::int64_t busiest_stage() const {
    std::int64_t busiest = 0;
    Seconds most;
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      Seconds busy;
      each_chunk(stage, [&](std::int64_t c) { busy += chunks_[c].in_pairs().time(); });
      if (busy > most) {
        most = busy;
        busiest = stage;
      }
    }
    return busiest;
  }

  void add_passes(std::int64_t stage, TrainStepTime& step, Breakdown& rows) {
    each_chunk(stage, [&](std::int64_t c) {
      const auto [alone, in_pairs] = pipeline_.passes_of(stage, c);
      add_passes(chunks_[c].passes, alone, step);
      add_passes(chunks_[c].in_pairs(), in_pairs, step);
      chunks_.add_rows(c, alone, in_pairs, rows);
    });
  }
  static void add_passes(const ChunkPasses& passes, const PassCounts& counts, TrainStepTime& step) {
    const auto [there, back] = counts;
    step.forward += passes.forward_time * there;
    step.recompute += passes.recompute_time * back;
    step.backward += passes.backward_time() * back;
    step.exposed += passes.waiting * back;
    const auto wait_for_host = [&](const HostWait& wait, double count) {
      step.host += wait.launches * count;
      step.gaps += wait.gaps * count;
    };
    wait_for_host(passes.forward_host, there);
    wait_for_host(passes.backward_host, back);
    if (passes.copies) {
      step.copied += passes.copies->out.work.exposed() * there;
      step.copied += passes.copies->back.work.exposed() * back;
    }
    step.hidden += passes.hidden * back;
    for (const DeviceTime* part : {&passes.forward, &passes.exchange}) {
      step.device.add(*part, there);
    }
    for (const DeviceTime* part :
         {&passes.recomputed, &passes.inputs, &passes.weights, &passes.exchange_back}) {
      step.device.add(*part, back);
    }
  }

  double updated_weights(std::int64_t stage) const {
    const StateSharing replicas = sharers_of(context_of(stage).shard.parallel, train_);
    double weights = 0;
    each_chunk(stage, [&](std::int64_t c) {
      const ChunkWeights& trained = chunks_[c].states.trained;
      weights += train_.zero > 0
                     ? trained.dense / replicas.dense + trained.experts / replicas.experts
                     : trained.total();
    });
    return weights;
  }
  // Replicas that share states out make each matrix orthogonal on one device of theirs.
  OpList products_of_update(std::int64_t stage) const {
    OpList products;
    if (train_.optimizer != Optimizer::muon || train_.has_adapters()) return products;
    StageSpan layers{.layers = {}, .first = false, .last = false};
    each_chunk(stage, [&](std::int64_t c) {
      const LayerCounts& more = chunks_[c].chunk.trained.layers;
      layers.layers.dense += more.dense;
      layers.layers.mixture += more.mixture;
      layers.layers.full += more.full;
      layers.layers.windowed += more.windowed;
      layers.layers.scanning += more.scanning;
    });
    const ModelShard& shard = context_of(stage).shard;
    PassOps ops;
    TrainSettings whole = train_;
    whole.tp_overlap = false;  // products in pieces are of the same matrices
    pass_ops(shard, {.span = layers, .trained = layers}, whole, ops);
    const StateSharing sharers =
        train_.zero > 0 ? sharers_of(shard.parallel, train_) : StateSharing{};
    add_newton_schulz(ops.forward, sharers, products);
    return products;
  }
  Seconds a_backward_pass(std::int64_t stage) const {
    Seconds time;
    each_chunk(stage, [&](std::int64_t c) { time += chunks_[c].in_pairs().backward_time(); });
    return time;
  }
  Update update_of(std::int64_t stage) const {
    const ChunkPlace place{context_of(stage).shard, stages_};
    const double passes = gradients_leave(place, train_) ? pipeline_.passes_of_a_chunk() : 1;
    // Gradients that replicas sum up once a step leave for the host as their sums come in.
    return {.weights = updated_weights(stage),
            .backward =
                a_backward_pass(stage) + (passes > 1 ? Seconds{0} : gradients_after_passes(stage)),
            .passes = passes,
            .products = products_of_update(stage)};
  }

  // What a stage does after all passes: exposed traffic between replicas, and the update. Stages with the same chunks are
  // neighbours.
  Seconds longest_closing() const {
    Seconds longest;
    if (stages_ == 1) return longest;
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      if (stage > 0 && same_chunks(stage - 1, stage)) continue;
      Breakdown nobody_looks;
      longest = std::max(
          longest, traffic_after_passes(stage) +
                       optimizer_time(update_of(stage), train_, context_of(stage), nobody_looks));
    }
    return longest;
  }
  bool same_chunks(std::int64_t one, std::int64_t other) const {
    const ChunkPlaces places = pipeline_.places();
    for (std::int64_t i = 0; i < places.on_each(); ++i) {
      if (&chunks_[places.chunk(one, i)] != &chunks_[places.chunk(other, i)]) return false;
    }
    return true;
  }

  // Traffic between replicas once all passes are done or before the first one: what of it is waited for.
  struct Wait {
    Seconds takes, exposed;
    Seconds hidden() const { return takes - std::min(takes, exposed); }
    double hidden_share() const { return takes.value > 0 ? hidden() / takes : 0; }
  };
  Wait wait_for(const ChunkKind& kind, Seconds work, Seconds takes) const {
    if (takes.value <= 0) return {};
    return {takes,
            exposed_in_turn(work, takes, double(kind.chunk.span.layers.all()),
                            {.sent = double(chunks_in_turn()),
                             .row = double(std::min(stages_, micro_batches_))},
                            {train_.overlap, train_.collective_multiprocessors, kind.on->device})};
  }
  // Chunks of a stage that take turns, each a row of micro-batches at a time.
  std::int64_t chunks_in_turn() const {
    return is_dual(pipeline_.schedule()) ? 1 : pipeline_.places().on_each();
  }
  // Gradients of weights that are put off are not there while those of inputs are made.
  Seconds makes_gradients(const ChunkKind& kind) const {
    return chunks_.puts_off_weights() ? kind.passes.weights_time : kind.passes.backward_time();
  }
  // Gradients travel behind the last backward pass, and updated weights ahead of the first forward pass; gradients and
  // weights that are shared out travel in every pass, whose time has it.
  Wait for_gradients(const ChunkKind& kind) const {
    if (scatters_per_pass(train_, stages_) > 0) return {};
    return wait_for(kind, makes_gradients(kind), kind.scatter);
  }
  // What groups scattered pass by pass they sum up with one another once a step, behind the last backward pass.
  Wait for_groups(const ChunkKind& kind) const {
    return wait_for(kind, makes_gradients(kind), kind.across);
  }
  Wait for_weights(const ChunkKind& kind) const {
    return train_.zero < 3 ? wait_for(kind, kind.passes.forward_time, kind.gather) : Wait{};
  }
  Seconds gradients_after_passes(std::int64_t stage) const {
    Seconds sum;
    each_chunk(stage, [&](std::int64_t c) {
      sum += for_gradients(chunks_[c]).exposed + for_groups(chunks_[c]).exposed;
    });
    return sum;
  }
  Seconds traffic_after_passes(std::int64_t stage) const {
    Seconds sum = gradients_after_passes(stage);
    each_chunk(stage, [&](std::int64_t c) { sum += for_weights(chunks_[c]).exposed; });
    return sum;
  }

  // Traffic that passes of a chunk hide, on average.
  Seconds hidden_beside_passes(std::int64_t stage, std::int64_t c) {
    const auto [alone, in_pairs] = pipeline_.passes_of(stage, c);
    const ChunkKind& kind = chunks_[c];
    return (kind.passes.hidden * alone.backward + kind.in_pairs().hidden * in_pairs.backward) /
           pipeline_.passes_of_a_chunk();
  }
  void add_traffic(std::int64_t stage, TrainStepTime& step, Breakdown& rows) {
    const double passes = pipeline_.passes_of_a_chunk();
    each_chunk(stage, [&](std::int64_t c) {
      const ChunkKind& kind = chunks_[c];
      ReplicaOps ops;
      replica_ops(kind.on->shard.parallel, kind.states, train_, ops);
      const Wait groups = for_groups(kind);
      step.exposed += groups.exposed;
      step.hidden += groups.hidden();
      add_rows(kind, ops.across, {1, groups.hidden_share()}, rows);
      if (train_.zero == 3) {
        const double gathers = 1 + kind.gathered_again;
        const Seconds all = kind.gather * gathers + kind.scatter;
        const double hidden = all.value > 0 ? hidden_beside_passes(stage, c) / all : 0;
        add_rows(kind, ops.gather, {gathers * passes, hidden}, rows);
        add_rows(kind, ops.scatter, {passes, hidden}, rows);
        return;
      }
      const Wait gradients = for_gradients(kind), weights = for_weights(kind);
      step.exposed += gradients.exposed + weights.exposed;
      step.hidden += gradients.hidden() + weights.hidden();
      if (const double scatters = scatters_per_pass(train_, stages_); scatters > 0) {
        const Seconds takes = kind.scatter * scatters;
        const double hidden = takes.value > 0 ? hidden_beside_passes(stage, c) / takes : 0;
        add_rows(kind, ops.scatter, {passes * scatters, hidden}, rows);
      } else {
        add_rows(kind, ops.scatter, {1, gradients.hidden_share()}, rows);
      }
      add_rows(kind, ops.gather, {1, weights.hidden_share()}, rows);
    });
  }
  struct Traffic {
    double count, hidden;
  };
  void add_rows(const ChunkKind& kind, const OpList& ops, const Traffic& traffic, Breakdown& rows) {
    row_scratch_.clear();
    device_time(ops, *kind.on, Phase::gradients, &row_scratch_);
    for (KernelRow& row : row_scratch_) {
      hide(traffic.hidden, kind.on->device, row);
      rows.add(row, traffic.count);
    }
  }

  void add_loading(TrainStepTime& step, Breakdown& rows) const {
    step.loading = loading_wait(train_, parallel_.dp, step.iteration);
    if (step.loading.value <= 0) return;
    step.iteration += step.loading;
    step.host += step.loading;
    rows.add(loading_row(step.loading));
  }

  void add_memory(TrainStepTime& step) {
    const Pipeline pipeline = pipeline_.untimed();
    Bytes least_free;
    for (std::int64_t stage = 0; stage < stages_; ++stage) {
      StageMemory memory;
      each_chunk(stage, [&](std::int64_t c) {
        memory.add(chunks_[c].memory, chunks_[c].activations, passes_held(pipeline, stage, c));
      });
      TrainMemory sum = memory.sum(train_, pipeline_.passes_of_a_chunk());
      sum.reserved = train_.reserved_memory;
      const Bytes capacity = pools_.of(stage).device.memory_capacity * train_.memory_utilization;
      const Bytes free = capacity - sum.total();
      if (stage > 0 && free >= least_free) continue;
      least_free = free;
      step.memory = sum;
      step.capacity = capacity;
      step.peak_stage = stage;
    }
  }

  void add_states(TrainStepTime& step) const {
    for (std::int64_t c = 0; c < chunks_.size(); ++c) {
      const Parallelism& parallel = chunks_[c].on->shard.parallel;
      const double owners = double(std::max(parallel.tp, parallel.ep));
      const ChunkWeights& trained = chunks_[c].states.trained;
      step.trained_weights +=
          (trained.dense - trained.repeated) * double(parallel.tp) + trained.experts * owners;
    }
    const StateBytes bytes = state_bytes(train_, trains_wide(pools_.main.shard));
    step.checkpoint = Bytes{step.trained_weights * (bytes.weights + bytes.optimizer())};
  }

  // Scores that attention computes again are no arithmetic of the model, as nothing is that a step computes twice.
  void add_flops(TrainStepTime& step) const {
    Flops once, again;
    for (std::int64_t c = 0; c < chunks_.size(); ++c) {
      const ChunkPasses& passes = chunks_[c].passes;
      const double sharers = double(chunks_[c].on->shard.parallel.tp);
      const Flops all = passes.forward.flops() + passes.inputs.flops() + passes.weights.flops();
      const Flops scores = passes.inputs.attention.flops * kScoresAgain;
      once += (all - scores) * sharers;
      again += (passes.recomputed.flops() + scores) * sharers;
    }
    const double passes = double(micro_batches_ * parallel_.dp * parallel_.cp);
    step.model_flops = once * passes;
    step.device_flops = (once + again) * passes;
  }

  StagePools pools_;
  const TrainSettings& train_;
  const Parallelism& parallel_;  // of the main devices; the others' replicas are the same
  ChunkKinds chunks_;
  TrainPipeline pipeline_;
  std::int64_t stages_, micro_batches_;
  std::vector<PipelinePass>* passes_;  // written down for a trace; null: there is none
  std::vector<KernelRow> row_scratch_;
};

}  // namespace

TrainStepTime train_step_time(const StagePools& pools, const TrainSettings& train,
                              TrainScratch& scratch, Breakdown& rows) {
  return TrainStep(pools, train, scratch).run(rows);
}

}  // namespace engine
