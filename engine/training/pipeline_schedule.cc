#include "engine/training/pipeline_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engine/base/check.h"

namespace engine {
namespace {

enum class PassKind : std::uint8_t { forward, backward, weights, none };

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
    // that earlier stages get their gradients sooner, and so early that no more activations are held.
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
  void skip(std::int64_t rounds) {
    forward_ += rounds;
    backward_ += rounds;
    if (lag_ < kNoWeights) weights_ += rounds;
  }
  // Forward passes ahead of the backward passes, in the steady state.
  std::int64_t ahead() const { return ahead_; }

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

// A pipeline of one chunk a stage, round by round. In a round every stage does one backward pass, and the forward pass
// that its order puts before it.
class Rounds {
 public:
  explicit Rounds(const Pipeline& pipeline) : pipeline_(pipeline) {
    const std::size_t stages = std::size_t(pipeline.stages);
    for (std::size_t s = 0; s < stages; ++s) orders_.emplace_back(pipeline, std::int64_t(s));
    std::int64_t window = 2;
    while (window < orders_[0].ahead() + 2) window *= 2;
    window_ = window;
    free_.assign(stages, 0);
    sent_.assign(stages * std::size_t(window), 0);
    last_round_.assign(stages, 0);
  }

  double run() {
    const std::int64_t rounds = pipeline_.micro_batches;
    // So many rounds in a row that advance alike reach back as far as any pass depends on.
    const std::int64_t enough = pipeline_.stages + 2;
    std::int64_t alike = 0;
    double pace = -1;
    for (std::int64_t round = 0; round < rounds; ++round) {
      do_round();
      alike = advanced_by(pace) ? alike + 1 : 0;
      pace = free_[0] - last_round_[0];
      last_round_ = free_;
      const std::int64_t left = rounds - round - 1 - enough;
      if (alike < enough || left <= 0) continue;
      skip(left, pace);
      round += left;
      alike = 0;
    }
    for (std::size_t s = 0; s < free_.size(); ++s) {
      for (PassKind kind; (kind = orders_[s].next()) != PassKind::none;) pass(s, kind, 0);
    }
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  void do_round() {
    const std::size_t stages = free_.size();
    for (std::size_t s = 0; s < stages; ++s) {
      for (PassKind kind;
           (kind = orders_[s].next()) == PassKind::forward || kind == PassKind::weights;) {
        const std::int64_t number = orders_[s].number(kind);
        const double arrives =
            s == 0 || kind == PassKind::weights ? 0 : sent_at(s - 1, number) + pipeline_.send.value;
        const double end = pass(s, kind, arrives);
        if (kind == PassKind::forward) sent_at(s, number) = end;
      }
    }
    double gradient = 0;
    for (std::size_t s = stages; s-- > 0;) {
      gradient = pass(s, PassKind::backward, gradient) + pipeline_.send.value;
    }
  }
  double pass(std::size_t s, PassKind kind, double ready) {
    const ChunkTime& chunk = pipeline_.chunks[s];
    const double takes = kind == PassKind::forward    ? chunk.forward.value
                         : kind == PassKind::backward ? chunk.backward.value
                                                      : chunk.weights.value;
    orders_[s].advance(kind);
    return free_[s] = std::max(free_[s], ready) + takes;
  }
  bool advanced_by(double pace) const {
    for (std::size_t s = 0; s < free_.size(); ++s) {
      if (std::abs(free_[s] - last_round_[s] - pace) > 1e-12 * free_[s]) return false;
    }
    return true;
  }
  void skip(std::int64_t rounds, double pace) {
    const double passed = double(rounds) * pace;
    std::vector<double> moved(sent_.size());
    for (std::size_t s = 0; s < free_.size(); ++s) {
      const std::int64_t done = orders_[s].number(PassKind::forward);
      for (std::int64_t n = std::max<std::int64_t>(0, done - window_); n < done; ++n) {
        moved[place(s, n + rounds)] = sent_[place(s, n)] + passed;
      }
      orders_[s].skip(rounds);
      free_[s] += passed;
    }
    sent_ = std::move(moved);
    last_round_ = free_;
  }
  std::size_t place(std::size_t s, std::int64_t number) const {
    return s * std::size_t(window_) + std::size_t(number & (window_ - 1));
  }
  double& sent_at(std::size_t s, std::int64_t number) { return sent_[place(s, number)]; }

  const Pipeline& pipeline_;
  std::vector<StageOrder> orders_;
  std::int64_t window_ = 2;
  std::vector<double> free_;        // when a stage has done what it has begun
  std::vector<double> sent_;        // when a forward pass ended, of the last passes of each stage
  std::vector<double> last_round_;  // free_, a round ago
};

}  // namespace

PipelineTime pipeline_time_step_by_step(const Pipeline& pipeline) {
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
        if (kind == PassKind::forward) {
          forward[chunk * micro_batches + at] = free[s] += time.forward.value;
        } else if (kind == PassKind::backward) {
          backward[chunk * micro_batches + at] = free[s] += time.backward.value;
        } else {
          free[s] += time.weights.value;
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
  if (pipeline.stages == 1 && pipeline.chunks_per_stage() == 1) {
    const Seconds busy{busiest(pipeline)};
    return {busy, busy};
  }
  const bool by_rounds = pipeline.chunks_per_stage() == 1 && pipeline.schedule != Schedule::gpipe;
  if (!by_rounds) return pipeline_time_step_by_step(pipeline);
  return {Seconds{Rounds(pipeline).run()}, Seconds{busiest(pipeline)}};
}

std::int64_t passes_held(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t passes = pipeline.chunks_per_stage() * pipeline.micro_batches;
  return std::min(StageOrder(pipeline, stage).ahead() + 1, passes);
}

}  // namespace engine
