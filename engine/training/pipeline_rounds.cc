#include "engine/training/pipeline_rounds.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "engine/training/pipeline_waves.h"

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

// In wave w, stage s does its round (w + s) / 2, if that is a whole number: then each pass waits for what a neighbour did
// in the wave before, and even stages take turns with odd ones.
class Rounds {
 public:
  explicit Rounds(const Pipeline& pipeline)
      : pipeline_(pipeline),
        stages_(pipeline.stages),
        micro_batches_(pipeline.micro_batches),
        send_(pipeline.send.value),
        puts_off_weights_(pipeline.schedule == Schedule::zero_bubble) {
    const std::size_t size = std::size_t(stages_ / 2 + 2);
    for (const std::int64_t odd : {0, 1}) {
      Half& half = halves_[std::size_t(odd)];
      for (std::vector<double>* times : {&half.forward, &half.backward, &half.weights}) {
        times->assign(size, 0);
      }
      // From beyond the ends nothing comes.
      for (std::vector<double>* times : {&half.free, &half.forward_end, &half.backward_end}) {
        times->assign(size, kNothing);
      }
      for (std::int64_t s = odd; s < stages_; s += 2) {
        const ChunkTime& chunk = pipeline.chunks[std::size_t(s)];
        const std::size_t place = std::size_t(s / 2 + odd);
        half.free[place] = 0;
        half.forward[place] = chunk.forward.value;
        half.backward[place] = chunk.backward.value;
        half.weights[place] = chunk.weights.value;
      }
    }
  }

  double run() {
    const std::int64_t cycle = stages_of_slowest_loop(pipeline_);
    // Before, some stages have no gradients of weights to follow up; after, some run out of forward passes.
    const std::int64_t first_like = puts_off_weights_ ? (stages_ + 1) / 2 : 0;
    const std::int64_t last_like = micro_batches_ - stages_;
    std::vector<std::vector<double>> history(std::size_t(cycle), std::vector<double>{});
    for (std::int64_t step = 1 - stages_; step < micro_batches_; ++step) {
      if (step >= first_like && step < last_like) {
        for (const std::int64_t back : {std::int64_t{1}, cycle}) {
          double passed = 0;
          if (step - first_like < back) continue;
          if (!stands_as(history[std::size_t((step - back) % cycle)], times_, passed)) continue;
          const std::int64_t times = (last_like - step) / back;
          move_on(times_, double(times) * passed);
          step += times * back;
        }
        remember(times_, history[std::size_t(step % cycle)]);
      }
      do_wave(2 * step);
      do_wave(2 * step + 1);
    }
    return end();
  }

 private:
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  // The even stages or the odd ones. Stage s has place s / 2, and one more where it is odd.
  struct Half {
    std::vector<double> free;  // when a stage has done what it began
    std::vector<double> forward_end, backward_end;
    std::vector<double> forward, backward, weights;
  };

  // Places of the stages from `first` to `last` that this wave is about.
  WaveRange places(std::int64_t first, std::int64_t last, std::int64_t odd) const {
    first = std::max(first, std::int64_t{0});
    last = std::min(last, stages_ - 1);
    if (first > last) return {};
    return {(first + 1 - odd) / 2 + odd, (last - odd + 2) / 2 + odd};
  }

  void do_wave(std::int64_t wave) {
    const std::int64_t odd = wave & 1;
    Half& half = halves_[std::size_t(odd)];
    const Half& other = halves_[std::size_t(1 - odd)];
    // A stage does one forward pass more ahead of its backward passes for every stage that follows it.
    const WaveRange forward =
        places(wave - 2 * (micro_batches_ - stages_), wave + 2 * (stages_ - 1), odd);
    const WaveRange backward = places(-wave, 2 * (micro_batches_ - 1) - wave, odd);
    if (puts_off_weights_) {
      // The gradients of weights follow as many backward passes late as there are stages before this one: so late
      // that earlier stages get their gradients sooner, and so early that no more activations are held.
      const WaveRange weights = places(0, wave - 1, odd);
      const std::int64_t upto = std::min(weights.upto, backward.upto);
      for (std::int64_t i = std::max(weights.from, backward.from); i < upto; ++i) {
        half.free[std::size_t(i)] += half.weights[std::size_t(i)];
      }
    }
    do_passes({.free = half.free.data(),
               .end = half.forward_end.data(),
               .awaited = other.forward_end.data() - odd,
               .time = half.forward.data()},
              send_, forward);
    do_passes({.free = half.free.data(),
               .end = half.backward_end.data(),
               .awaited = other.backward_end.data() + 1 - odd,
               .time = half.backward.data()},
              send_, backward);
  }

  double end() const {
    double end = 0;
    for (std::int64_t s = 0; s < stages_; ++s) {
      const Half& half = halves_[std::size_t(s & 1)];
      const std::size_t place = std::size_t(s / 2 + (s & 1));
      const double left = double(std::min(s + 1, micro_batches_));
      end = std::max(end, half.free[place] + (puts_off_weights_ ? left * half.weights[place] : 0));
    }
    return end;
  }

  const Pipeline& pipeline_;
  std::int64_t stages_, micro_batches_;
  double send_;
  bool puts_off_weights_;
  std::array<Half, 2> halves_;
  std::array<std::vector<double>*, 6> times_{&halves_[0].free,         &halves_[0].forward_end,
                                             &halves_[0].backward_end, &halves_[1].free,
                                             &halves_[1].forward_end,  &halves_[1].backward_end};
};

}  // namespace

Seconds time_by_rounds(const Pipeline& pipeline) { return Seconds{Rounds(pipeline).run()}; }

}  // namespace engine
