#include "engine/training/pipeline_rounds.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace engine {
namespace {

// A stage waits for later ones, which wait for it: in a stretch of n neighbouring stages a micro-batch goes down and its
// gradient comes up, and the first stage has begun n more by then. So a step of the steady state takes at least as long as
// the slowest such loop for each of its micro-batches; and in as many rounds as that loop has stages everything repeats.
std::int64_t stages_of_slowest_loop(const Pipeline& pipeline) {
  const double both_ways = 2 * pipeline.send.value;
  if (both_ways <= 0) return 1;
  double slowest = 0;
  std::int64_t stages = 1;
  for (std::size_t first = 0; first < pipeline.chunks.size(); ++first) {
    double loop = pipeline.chunks[first].weights.value - both_ways;
    for (std::size_t last = first; last < pipeline.chunks.size(); ++last) {
      const ChunkTime& chunk = pipeline.chunks[last];
      loop += chunk.forward.value + chunk.backward.value + both_ways;
      const double length = double(last - first + 1);
      if (loop <= slowest * length * (1 + 1e-12)) continue;
      slowest = loop / length;
      stages = std::int64_t(last - first + 1);
    }
  }
  return stages;
}

class Rounds {
 public:
  explicit Rounds(const Pipeline& pipeline)
      : pipeline_(pipeline),
        send_(pipeline.send.value),
        micro_batches_(pipeline.micro_batches),
        puts_off_weights_(pipeline.schedule == Schedule::zero_bubble) {
    const std::size_t stages = pipeline.chunks.size();
    for (std::size_t s = 0; s < stages; ++s) {
      const ChunkTime& chunk = pipeline.chunks[s];
      stages_.push_back({.forward = chunk.forward.value,
                         .backward = chunk.backward.value,
                         .weights = chunk.weights.value,
                         .ahead = passes_held(pipeline, std::int64_t(s)) - 1});
    }
    while (window_ < stages_[0].ahead + 2) window_ *= 2;
    sent_.assign(stages * std::size_t(window_), 0);
  }

  double run() {
    const std::int64_t cycle = stages_of_slowest_loop(pipeline_);
    // Before, some stages have no gradients of weights to follow up; after, some run out of forward passes.
    const std::int64_t first_like = puts_off_weights_ ? std::int64_t(stages_.size()) : 0;
    const std::int64_t last_like = micro_batches_ - 1 - stages_[0].ahead;
    std::vector<double> history;
    bool skipped = false;
    for (std::int64_t round = 0; round < micro_batches_; ++round) {
      do_round(round);
      if (skipped || round < first_like || round >= last_like) continue;
      const std::int64_t known = round - first_like;
      double passed = 0;
      std::int64_t rounds = 0;
      for (const std::int64_t back : {std::int64_t{1}, cycle}) {
        if (rounds == 0 && back <= known && repeats(history, (known - back) % cycle, passed)) {
          rounds = back;
        }
      }
      if (rounds == 0) {
        remember(history, known % cycle);
        continue;
      }
      skipped = true;
      const std::int64_t times = (last_like - round) / rounds;
      skip(times * rounds, double(times) * passed);
      round += times * rounds;
    }
    double end = 0;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      const double left = double(std::min(std::int64_t(s) + 1, micro_batches_));
      end = std::max(end, stages_[s].free + (puts_off_weights_ ? left * stages_[s].weights : 0));
    }
    return end;
  }

 private:
  struct Stage {
    double forward = 0, backward = 0, weights = 0;
    std::int64_t ahead = 0;  // forward passes before the first backward pass
    std::int64_t begun = 0;  // forward passes
    double free = 0;         // when it has done what it has begun
    double sent = 0;         // when its last forward pass ended
  };

  void do_round(std::int64_t round) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      Stage& stage = stages_[s];
      // The gradients of weights follow as many backward passes late as there are stages before this one: so late
      // that earlier stages get their gradients sooner, and so early that no more activations are held.
      if (puts_off_weights_ && round > std::int64_t(s)) stage.free += stage.weights;
      const std::int64_t upto = std::min(stage.ahead + round + 1, micro_batches_);
      for (; stage.begun < upto; ++stage.begun) {
        const double arrives = s == 0 ? 0 : sent_at(s - 1, stage.begun) + send_;
        stage.sent = stage.free = std::max(stage.free, arrives) + stage.forward;
        sent_at(s, stage.begun) = stage.sent;
      }
    }
    double gradient = 0;
    for (std::size_t s = stages_.size(); s-- > 0;) {
      Stage& stage = stages_[s];
      stage.free = std::max(stage.free, gradient) + stage.backward;
      gradient = stage.free + send_;
    }
  }

  // How all stages stand: what follows depends on nothing else.
  void remember(std::vector<double>& history, std::int64_t place) const {
    const std::size_t size = 2 * stages_.size();
    history.resize(std::max(history.size(), std::size_t(place + 1) * size));
    double* at = &history[std::size_t(place) * size];
    for (const Stage& stage : stages_) {
      *at++ = stage.free;
      *at++ = stage.sent;
    }
  }
  // Whether all stages stand as they stood then, `passed` later.
  bool repeats(const std::vector<double>& history, std::int64_t place, double& passed) const {
    const double* at = &history[std::size_t(place) * 2 * stages_.size()];
    passed = stages_[0].free - at[0];
    const double tolerance = 1e-12 * stages_[0].free;
    for (const Stage& stage : stages_) {
      if (std::abs(stage.free - at[0] - passed) > tolerance) return false;
      if (std::abs(stage.sent - at[1] - passed) > tolerance) return false;
      at += 2;
    }
    return true;
  }
  void skip(std::int64_t rounds, double passed) {
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      Stage& stage = stages_[s];
      stage.free += passed;
      stage.sent += passed;
      stage.begun += rounds;
      sent_at(s, stage.begun - 1) = stage.sent;
    }
  }
  double& sent_at(std::size_t s, std::int64_t number) {
    return sent_[s * std::size_t(window_) + std::size_t(number & (window_ - 1))];
  }

  const Pipeline& pipeline_;
  double send_;
  std::int64_t micro_batches_;
  bool puts_off_weights_;
  std::int64_t window_ = 2;
  std::vector<Stage> stages_;
  std::vector<double> sent_;  // ends of each stage's last forward passes
};

}  // namespace

Seconds time_by_rounds(const Pipeline& pipeline) { return Seconds{Rounds(pipeline).run()}; }

}  // namespace engine
