#include "engine/training/pipeline/pipeline_schedule.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/check.h"
#include "engine/training/pipeline/pipeline_chunks.h"
#include "engine/training/pipeline/pipeline_rounds.h"

namespace engine {
namespace {

// Where a stage stands in its order: how many passes of each kind it has begun, and with that what comes next.
class StageOrder {
 public:
  StageOrder() = default;
  StageOrder(const Pipeline& pipeline, std::int64_t stage)
      : passes_(pipeline.chunks_per_stage() * pipeline.micro_batches),
        lag_(pipeline.schedule == Schedule::zero_bubble ? stage : kNoWeights) {
    const std::int64_t after = pipeline.stages - stage - 1;
    const std::int64_t chunks_before = (pipeline.chunks_per_stage() - 1) * pipeline.stages;
    switch (pipeline.schedule) {
      case Schedule::gpipe:
        ahead_ = passes_;
        break;
      case Schedule::one_f_one_b:
      case Schedule::zero_bubble:
        ahead_ = std::min(after, passes_);
        break;
      case Schedule::interleaved:
        ahead_ = std::min(2 * after + chunks_before, passes_);
        break;
    }
  }

  PassKind next() const {
    // The gradients of weights follow as many backward passes late as there are stages before this one: so late
    // that earlier stages get their gradients sooner, and so early that no stage holds more activations than the first.
    if (weights_ < backward_ - lag_) return PassKind::weights;
    if (forward_ < std::min(ahead_ + backward_ + 1, passes_)) return PassKind::forward;
    if (backward_ < passes_) return PassKind::backward;
    return lag_ < kNoWeights && weights_ < passes_ ? PassKind::weights : PassKind::none;
  }
  // The number of the pass that is next, among those of its kind.
  std::int64_t number(PassKind kind) const {
    return kind == PassKind::forward ? forward_ : kind == PassKind::backward ? backward_ : weights_;
  }
  void advance(PassKind kind) {
    (kind == PassKind::forward ? forward_ : kind == PassKind::backward ? backward_ : weights_) += 1;
  }
  // Passes that are begun and not done with, gradients of weights included, when one more goes forward in the steady state. Chunks in
  // turn have slack for passes side by side, but for one.
  std::int64_t held(const Pipeline& pipeline) const {
    const bool in_turn = pipeline.schedule == Schedule::interleaved;
    const std::int64_t longer = pipeline.side_by_side ? (in_turn ? 1 : ahead_) : 0;
    const std::int64_t put_off = lag_ < kNoWeights ? lag_ : 0;
    return std::min(ahead_ + 1 + longer + put_off, passes_);
  }

 private:
  static constexpr std::int64_t kNoWeights = std::int64_t{1} << 62;
  std::int64_t passes_ = 0, ahead_ = 0, lag_ = kNoWeights;
  std::int64_t forward_ = 0, backward_ = 0, weights_ = 0;
};

// Which chunk the n-th forward or backward pass of a stage is of, and for which micro-batch: micro-batches go through the
// chunks of a stage in groups of as many as there are stages.
struct Place {
  std::int64_t chunk = 0;
  std::int64_t micro_batch = 0;
};
Place place_of(const Pipeline& pipeline, std::int64_t stage, PassKind kind, std::int64_t number) {
  const std::int64_t per_stage = pipeline.chunks_per_stage(), stages = pipeline.stages;
  if (per_stage == 1) return {stage, number};
  const std::int64_t round = stages * per_stage, within = number % round;
  std::int64_t chunk = within / stages;
  if (kind == PassKind::backward) chunk = per_stage - 1 - chunk;
  return {chunk * stages + stage, number / round * stages + within % stages};
}

double busiest(const Pipeline& pipeline) {
  double most = 0;
  for (std::int64_t stage = 0; stage < pipeline.stages; ++stage) {
    double busy = 0;
    for (std::size_t c = std::size_t(stage); c < pipeline.chunks.size();
         c += std::size_t(pipeline.stages)) {
      const ChunkTime& chunk = pipeline.chunks[c];
      busy += (chunk.forward + chunk.backward + chunk.weights).value;
    }
    most = std::max(most, busy);
  }
  return most * double(pipeline.micro_batches);
}

// All forward passes, then all backward passes: the slowest stage does its passes one after another, and each other stage
// adds one.
Seconds time_of_two_sweeps(const Pipeline& pipeline) {
  Seconds forward, backward, slowest_forward, slowest_backward;
  for (const ChunkTime& chunk : pipeline.chunks) {
    const Seconds back = chunk.backward + chunk.weights;
    forward += chunk.forward;
    backward += back;
    slowest_forward = std::max(slowest_forward, chunk.forward);
    slowest_backward = std::max(slowest_backward, back);
  }
  const double others = double(pipeline.micro_batches - 1);
  const double sends = 2 * double(pipeline.stages - 1);
  return forward + backward + (slowest_forward + slowest_backward) * others + pipeline.send * sends;
}

}  // namespace

PipelineTime pipeline_time_step_by_step(const Pipeline& pipeline,
                                        std::vector<PipelinePass>* passes) {
  const std::size_t chunks = pipeline.chunks.size(), stages = std::size_t(pipeline.stages);
  const std::size_t micro_batches = std::size_t(pipeline.micro_batches);
  constexpr double unknown = -1;
  std::vector<double> forward(chunks * micro_batches, unknown), backward = forward;
  std::vector<StageOrder> orders;
  for (std::size_t s = 0; s < stages; ++s) orders.emplace_back(pipeline, std::int64_t(s));
  std::vector<double> free(stages, 0);
  // What a pass waits for; unknown while that has not been done.
  const auto ready = [&](PassKind kind, std::size_t chunk, std::size_t micro_batch) {
    if (kind == PassKind::weights) return 0.0;
    const bool first = kind == PassKind::forward ? chunk == 0 : chunk + 1 == chunks;
    if (first)
      return kind == PassKind::forward ? 0.0 : forward[chunk * micro_batches + micro_batch];
    const double before = kind == PassKind::forward
                              ? forward[(chunk - 1) * micro_batches + micro_batch]
                              : backward[(chunk + 1) * micro_batches + micro_batch];
    return before < 0 ? unknown : before + pipeline.send.value;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < stages; ++s) {
      for (PassKind kind; (kind = orders[s].next()) != PassKind::none;) {
        const Place place = place_of(pipeline, std::int64_t(s), kind, orders[s].number(kind));
        const std::size_t chunk = std::size_t(place.chunk), at = std::size_t(place.micro_batch);
        const double start = ready(kind, chunk, at);
        if (start < 0) break;
        const ChunkTime& time = pipeline.chunks[chunk];
        free[s] = std::max(free[s], start);
        const double began = free[s];
        if (kind == PassKind::forward) {
          forward[chunk * micro_batches + at] = free[s] += time.forward.value;
        } else if (kind == PassKind::backward) {
          backward[chunk * micro_batches + at] = free[s] += time.backward.value;
        } else {
          free[s] += time.weights.value;
        }
        if (passes != nullptr) {
          passes->push_back({std::int64_t(s), place.chunk, place.micro_batch, kind, Seconds{began},
                             Seconds{free[s]}});
        }
        orders[s].advance(kind);
        moved = true;
      }
    }
  }
  for (const StageOrder& order : orders) {
    check(order.next() == PassKind::none, "a pipeline's order leads to its end");
  }
  return {Seconds{*std::max_element(free.begin(), free.end())}, Seconds{busiest(pipeline)}};
}

PipelineTime pipeline_time(const Pipeline& pipeline) {
  if (pipeline.stages == 1) {
    const Seconds busy{busiest(pipeline)};
    return {busy, busy};
  }
  const Seconds total = pipeline.schedule == Schedule::interleaved ? time_by_chunks(pipeline)
                        : pipeline.schedule == Schedule::gpipe     ? time_of_two_sweeps(pipeline)
                                                                   : time_by_rounds(pipeline);
  return {total, Seconds{busiest(pipeline)}};
}

double work_of(const Pipeline& pipeline) {
  const double passes = 2 * double(pipeline.chunks.size()) * double(pipeline.micro_batches);
  if (pipeline.stages == 1 || pipeline.schedule == Schedule::gpipe) return 1;
  // A pass is a maximum and two sums; of long pipelines most are skipped.
  return 0.1 * passes;
}

std::int64_t passes_held(const Pipeline& pipeline, std::int64_t stage) {
  // Alone, a stage takes one micro-batch through all its chunks and back before the next, or beside it.
  if (pipeline.stages == 1) {
    const bool two = pipeline.side_by_side && pipeline.micro_batches > 1;
    return (two ? 2 : 1) * pipeline.chunks_per_stage();
  }
  return StageOrder(pipeline, stage).held(pipeline);
}

}  // namespace engine
