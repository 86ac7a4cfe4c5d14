#include "engine/training/pipeline/pipeline_rounds.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "engine/training/pipeline/pipeline_waves.h"

namespace engine {
namespace {

// In wave w, stage s does its round (w + s) / 2, if that is a whole number: then each pass waits for what a neighbour did
// in the wave before, and even stages take turns with odd ones.
class Rounds {
 public:
  explicit Rounds(const Pipeline& pipeline)
      : pipeline_(pipeline),
        stages_(pipeline.stages),
        micro_batches_(pipeline.micro_batches),
        puts_off_weights_(pipeline.schedule == Schedule::zero_bubble),
        places_(stages_ / 2 + 2),
        // From beyond the ends nothing comes.
        moments_(std::size_t(6 * places_), kNothing),
        times_(moments_.size(), 0),
        halves_{half(0), half(1)} {
    for (std::int64_t s = 0; s < stages_; ++s) {
      const ChunkTime& chunk = pipeline.chunks[std::size_t(s)];
      moments_[std::size_t(place_of(s))] = 0;
      double* times = times_.data() + place_of(s);
      times[0] = chunk.forward.value;
      times[places_] = chunk.backward.value;
      times[2 * places_] = puts_off_weights_ ? chunk.weights.value : 0;
    }
  }

  double run() {
    // Before, some stages have no gradients of weights to follow up; after, some run out of forward passes.
    const std::int64_t first_full = puts_off_weights_ ? (stages_ + 1) / 2 : 0;
    const std::int64_t full_until = micro_batches_ - stages_;
    Repetition repetition(period(full_until - first_full));
    for (std::int64_t step = 1 - stages_; step < micro_batches_; ++step) {
      if (step >= first_full && step < full_until) {
        step += repetition.left_out(full_until - step, {&moments_});
      }
      if (step >= first_full && step < full_until) {
        do_full_wave(halves_[0], every_other(0, stages_ - 1, 0));
        do_full_wave(halves_[1], every_other(0, stages_ - 1, 1));
      } else {
        do_wave(halves_[0], ranges(2 * step));
        do_wave(halves_[1], ranges(2 * step + 1));
      }
    }
    return end();
  }

 private:
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  // Values of even stages lie together, and of odd ones: three rows of `places_` for either.
  std::int64_t rows_of(std::int64_t odd) const { return odd * 3 * places_; }
  std::int64_t place_of(std::int64_t stage) const { return rows_of(stage & 1) + (stage + 1) / 2; }

  // Beside an even stage lie the odd ones of the same place and of the next, beside an odd one the even ones of the place
  // before and of the same.
  Wave half(std::int64_t odd) {
    double* moments = moments_.data() + rows_of(odd);
    const double* other = moments_.data() + rows_of(1 - odd);
    const double* times = times_.data() + rows_of(odd);
    return {.free = moments,
            .weights = times + 2 * places_,
            .forward = {moments + places_, other + places_ - odd, times},
            .backward = {moments + 2 * places_, other + 2 * places_ + 1 - odd, times + places_},
            .send = pipeline_.send.value};
  }

  // Some multiple of the rounds in which everything repeats: to look takes as long as a round.
  std::int64_t period(std::int64_t rounds) const {
    constexpr std::int64_t kRoundsPerLook = 4;
    if (rounds <= kRoundsPerLook) return kRoundsPerLook;
    const std::int64_t cycle = rounds_of_slowest_loop();
    return (kRoundsPerLook + cycle - 1) / cycle * cycle;
  }

  std::int64_t rounds_of_slowest_loop() const {
    std::vector<double> work, put_off;
    for (const ChunkTime& chunk : pipeline_.chunks) {
      work.push_back((chunk.forward + chunk.backward).value);
      put_off.push_back(chunk.weights.value);
    }
    return slowest_loop(work, put_off, 2 * pipeline_.send.value);
  }

  // The even or the odd ones of the stages from `first` to `last`.
  WaveRange every_other(std::int64_t first, std::int64_t last, std::int64_t odd) const {
    first = std::max(first, std::int64_t{0});
    last = std::min(last, stages_ - 1);
    if (first > last) return {};
    return {(first + 1 - odd) / 2 + odd, (last - odd + 2) / 2 + odd};
  }

  WaveRanges ranges(std::int64_t wave) const {
    const std::int64_t odd = wave & 1;
    // A stage does one forward pass more ahead of its backward passes for every stage that follows it.
    WaveRanges ranges{.weights = {},
                      .forward = every_other(wave - 2 * (micro_batches_ - stages_),
                                             wave + 2 * (stages_ - 1), odd),
                      .backward = every_other(-wave, 2 * (micro_batches_ - 1) - wave, odd)};
    if (puts_off_weights_) {
      // The gradients of weights follow as many backward passes late as there are stages before this one: so late
      // that earlier stages get their gradients sooner, and so early that no more activations are held.
      ranges.weights = {ranges.backward.from,
                        std::min(ranges.backward.upto, every_other(0, wave - 1, odd).upto)};
    }
    return ranges;
  }

  double end() const {
    double end = 0;
    for (std::int64_t s = 0; s < stages_; ++s) {
      const double left = double(std::min(s + 1, micro_batches_));
      const double weights = times_[std::size_t(place_of(s) + 2 * places_)];
      end = std::max(end, moments_[std::size_t(place_of(s))] + left * weights);
    }
    return end;
  }

  const Pipeline& pipeline_;
  std::int64_t stages_, micro_batches_;
  bool puts_off_weights_;
  std::int64_t places_;
  std::vector<double>
      moments_;  // when stages are free, when forward passes ended, when backward passes did
  std::vector<double> times_;  // of forward passes, of backward passes, of weights that are put off
  std::array<Wave, 2> halves_;
};

}  // namespace

Seconds time_by_rounds(const Pipeline& pipeline) { return Seconds{Rounds(pipeline).run()}; }

}  // namespace engine
