#include "engine/training/pipeline/pipeline_chunks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "engine/training/pipeline/pipeline_waves.h"

namespace engine {
namespace {

// Passes of a stage are numbered by kind in the order in which it does them. A pass waits for the one of the same number
// on the neighbouring stage; at the ends of the pipeline, where data goes round, for the one that lies as many numbers
// before as there are stages. In round k, a stage does its k-th backward pass after the forward pass that its order puts
// before it. In wave w, stage s does round w + s: then each pass waits for what a neighbour did in the wave before.
// Where both go on side by side, the forward pass is one further ahead: the last stage can begin with no gradient of what it has yet to do.
class Chunks {
 public:
  explicit Chunks(const Pipeline& pipeline)
      : pipeline_(pipeline),
        stages_(pipeline.stages),
        chunks_(pipeline.chunks_per_stage()),
        passes_(chunks_ * pipeline.micro_batches),
        lead_(2 * (stages_ - 1) + (chunks_ - 1) * stages_ + (pipeline.side_by_side ? 1 : 0)),
        last_full_(passes_ - 1 - lead_),
        free_(std::size_t(stages_), 0),
        ends_(2 * std::size_t(stages_ + 1), 0),
        ends_before_(ends_.size(), 0),
        times_(5 * std::size_t(stages_), 0) {}

  double run() {
    // Pairs that wait for one another's neighbours repeat in two rounds.
    const std::int64_t group = stages_ * chunks_ * (pipeline_.side_by_side ? 2 : 1);
    Repetition repetition(group);
    for (std::int64_t wave = -lead_; wave < passes_; ++wave) {
      if (is_full(wave)) {
        wave += repetition.left_out(last_full_ + 1 - wave, {&free_, &ends_});
      }
      do_passes(wave);
    }
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  // In every wave one stage begins with another chunk, after as many passes of one as there are stages: forward the
  // next stage, backward the one before. A group is over when all chunks have had their turn.
  struct Turn {
    std::int64_t stage = 0;
    std::int64_t chunk = 0;  // how many this stage has done of the group
  };
  void next_turn(Turn& turn, std::int64_t step) const {
    turn.stage += step;
    if (turn.stage >= 0 && turn.stage < stages_) return;
    turn.stage = step > 0 ? 0 : stages_ - 1;
    turn.chunk = turn.chunk + 1 == chunks_ ? 0 : turn.chunk + 1;
  }
  const ChunkTime& chunk_time(std::int64_t stage, std::int64_t chunk) const {
    return pipeline_.chunks[std::size_t(chunk * stages_ + stage)];
  }

  // The forward pass of stage s has place s + 1: what comes round from the last stage lies before the first. Its backward
  // pass has place s: what comes round from the first stage lies after the last.
  void do_passes(std::int64_t wave) {
    ends_.swap(ends_before_);
    double *inputs = ends_before_.data(), *gradients = inputs + stages_ + 1;
    double *forward = times_.data(), *backward = forward + stages_;
    double *beside_forward = backward + 2 * stages_, *beside_backward = beside_forward + stages_;
    const Wave passes{.free = free_.data(),
                      .weights = backward + stages_,
                      .forward = {ends_.data() + 1, inputs, forward},
                      .backward = {ends_.data() + stages_ + 1, gradients + 1, backward},
                      .send = pipeline_.send.value};
    if (wave + lead_ < passes_ + stages_ - 1) {
      const Turn turn = forward_turn_;
      const ChunkTime& time = chunk_time(turn.stage, turn.chunk);
      forward[turn.stage] = time.forward.value;
      beside_forward[turn.stage] = time.beside_forward.value;
      inputs[0] = turn.chunk > 0 ? inputs[stages_] : kNothing;
      next_turn(forward_turn_, 1);
    }
    if (wave > -stages_) {
      // Backward passes come in the opposite order of chunks. Nothing is put off.
      const Turn turn = backward_turn_;
      const ChunkTime& time = chunk_time(turn.stage, chunks_ - 1 - turn.chunk);
      backward[turn.stage] = time.backward.value + time.weights.value;
      beside_backward[turn.stage] = time.beside_backward.value;
      gradients[stages_] = turn.chunk > 0 ? gradients[0] : kNothing;
      next_turn(backward_turn_, -1);
    }
    if (pipeline_.side_by_side) {
      Wave pairs = passes;
      pairs.forward.time = beside_forward;
      pairs.backward.time = beside_backward;
      do_pairs_and_others(pairs, passes, ranges(wave));
    } else if (is_full(wave)) {
      do_full_wave(passes, {0, stages_});
    } else {
      do_wave(passes, ranges(wave));
    }
  }

  // Stages that have passes of one kind only do those by themselves.
  static void do_pairs_and_others(const Wave& pairs, const Wave& alone, const WaveRanges& ranges) {
    const auto [forward, backward] = std::pair(ranges.forward, ranges.backward);
    const WaveRange both{std::max(forward.from, backward.from),
                         std::min(forward.upto, backward.upto)};
    if (both.from >= both.upto) {
      do_wave(alone, ranges);
      return;
    }
    do_pairs(pairs, both);
    do_wave(alone, {.weights = {},
                    .forward = {forward.from, both.from},
                    .backward = {backward.from, both.from}});
    do_wave(alone, {.weights = {},
                    .forward = {both.upto, forward.upto},
                    .backward = {both.upto, backward.upto}});
  }

  bool is_full(std::int64_t wave) const { return wave >= 0 && wave <= last_full_; }
  WaveRanges ranges(std::int64_t wave) const {
    constexpr std::int64_t none = 0;
    return {.weights = {},
            .forward = {std::max(none, wave + lead_ - passes_ + 1),
                        std::min(stages_, wave + lead_ + 1)},
            .backward = {std::max(none, -wave), std::min(stages_, passes_ - wave)}};
  }

  const Pipeline& pipeline_;
  std::int64_t stages_, chunks_, passes_;
  std::int64_t lead_;         // forward passes of the first stage before its first backward pass
  std::int64_t last_full_;    // from wave 0 to this one, all stages do both passes
  std::vector<double> free_;  // when a stage has done what it began
  std::vector<double> ends_, ends_before_;  // of passes of this wave and of the one before
  // Times of the chunks that stages are at, forward and backward, and of passes side by side. What is put off has none.
  std::vector<double> times_;
  Turn forward_turn_, backward_turn_{stages_ - 1, 0};
};

}  // namespace

Seconds time_by_chunks(const Pipeline& pipeline) { return Seconds{Chunks(pipeline).run()}; }

}  // namespace engine
