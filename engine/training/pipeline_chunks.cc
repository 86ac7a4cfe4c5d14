#include "engine/training/pipeline_chunks.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "engine/training/pipeline_waves.h"

namespace engine {
namespace {

// Passes of a stage are numbered by kind in the order in which it does them. A pass waits for the one of the same number
// on the neighbouring stage; at the ends of the pipeline, where data goes round, for the one that lies as many numbers
// before as there are stages. In round k, a stage does its k-th backward pass after the forward pass that its order puts
// before it. In wave w, stage s does round w + s: then each pass waits for what a neighbour did in the wave before.
class Chunks {
 public:
  explicit Chunks(const Pipeline& pipeline)
      : pipeline_(pipeline),
        stages_(pipeline.stages),
        chunks_(pipeline.chunks_per_stage()),
        passes_(chunks_ * pipeline.micro_batches),
        lead_(2 * (stages_ - 1) + (chunks_ - 1) * stages_),
        send_(pipeline.send.value) {
    const std::size_t size = std::size_t(stages_) + 1;
    for (std::vector<double>* values : {&forward_end_, &forward_end_before_, &backward_end_,
                                        &backward_end_before_, &forward_time_, &backward_time_}) {
      values->assign(size, 0);
    }
    free_.assign(std::size_t(stages_), 0);
  }

  double run() {
    const std::int64_t group = stages_ * chunks_;
    // From wave 0 to this one, all stages do both passes.
    const std::int64_t last_full = passes_ - 1 - lead_;
    std::vector<double> before;
    for (std::int64_t wave = -lead_; wave < passes_; ++wave) {
      if (wave >= 0 && wave % group == 0 && wave <= last_full) {
        double passed = 0;
        if (stands_as(before, times_, passed)) {
          const std::int64_t times = (last_full + 1 - wave) / group;
          move_on(times_, double(times) * passed);
          wave += times * group;
        }
        remember(times_, before);
      }
      do_forward(wave);
      do_backward(wave);
    }
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  // The chunk that a stage's n-th pass of a kind is of: as many passes of one as there are stages, then of the next.
  std::int64_t chunk_of(std::int64_t number) const { return number / stages_ % chunks_; }
  const ChunkTime& chunk_time(std::int64_t stage, std::int64_t chunk) const {
    return pipeline_.chunks[std::size_t(chunk * stages_ + stage)];
  }

  // Stage s has place s + 1; what comes round from the last stage lies before the first.
  void do_forward(std::int64_t wave) {
    // Stage s does forward pass `first` - s: one stage begins with another chunk.
    const std::int64_t first = wave + lead_;
    const std::int64_t from = std::max<std::int64_t>(0, first - passes_ + 1);
    const std::int64_t upto = std::min(stages_, first + 1);
    if (from >= upto) return;
    const std::int64_t changing = first % stages_;
    if (changing < upto) {
      forward_time_[std::size_t(changing + 1)] =
          chunk_time(changing, chunk_of(first - changing)).forward.value;
    }
    forward_end_.swap(forward_end_before_);
    forward_end_before_[0] = chunk_of(first) > 0 ? forward_end_before_.back() : kNothing;
    do_passes({.free = free_.data(),
               .end = forward_end_.data() + 1,
               .awaited = forward_end_before_.data(),
               .time = forward_time_.data() + 1},
              send_, {from, upto});
  }

  // Stage s has place s; what comes round from the first stage lies after the last.
  void do_backward(std::int64_t wave) {
    const std::int64_t from = std::max<std::int64_t>(0, -wave);
    const std::int64_t upto = std::min(stages_, passes_ - wave);
    if (from >= upto) return;
    const std::int64_t changing = ((-wave) % stages_ + stages_) % stages_;
    if (changing >= from && changing < upto) {
      // Backward passes come in the opposite order of chunks. Nothing is put off.
      const ChunkTime& time = chunk_time(changing, chunks_ - 1 - chunk_of(wave + changing));
      backward_time_[std::size_t(changing)] = time.backward.value + time.weights.value;
    }
    backward_end_.swap(backward_end_before_);
    backward_end_before_.back() =
        chunk_of(wave + stages_ - 1) > 0 ? backward_end_before_[0] : kNothing;
    do_passes({.free = free_.data(),
               .end = backward_end_.data(),
               .awaited = backward_end_before_.data() + 1,
               .time = backward_time_.data()},
              send_, {from, upto});
  }

  const Pipeline& pipeline_;
  std::int64_t stages_, chunks_, passes_;
  std::int64_t lead_;  // forward passes of the first stage before its first backward pass
  double send_;
  std::vector<double> free_;  // when a stage has done what it began
  // Of this wave and of the one before.
  std::vector<double> forward_end_, forward_end_before_, backward_end_, backward_end_before_;
  std::vector<double> forward_time_, backward_time_;  // of the chunks that stages are at
  std::array<std::vector<double>*, 3> times_{&free_, &forward_end_, &backward_end_};
};

}  // namespace

Seconds time_by_chunks(const Pipeline& pipeline) { return Seconds{Chunks(pipeline).run()}; }

}  // namespace engine
