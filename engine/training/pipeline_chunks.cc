#include "engine/training/pipeline_chunks.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "engine/base/check.h"

namespace engine {
namespace {

// Passes of a stage are numbered by kind in the order in which it does them. A pass waits for the one of the same number
// on the neighbouring stage; at the ends of the pipeline, where data goes round, for the one that lies as many numbers
// before as there are stages.
class Chunks {
 public:
  explicit Chunks(const Pipeline& pipeline)
      : stages_count_(pipeline.stages),
        chunks_(pipeline.chunks_per_stage()),
        passes_(chunks_ * pipeline.micro_batches),
        send_(pipeline.send.value) {
    const std::size_t stages = std::size_t(pipeline.stages), chunks = std::size_t(chunks_);
    stages_.resize(stages);
    forward_time_.resize(stages * chunks);
    backward_time_.resize(stages * chunks);
    for (std::size_t s = 0; s < stages; ++s) {
      stages_[s].held = passes_held(pipeline, std::int64_t(s));
      for (std::size_t c = 0; c < chunks; ++c) {
        const ChunkTime& time = pipeline.chunks[c * stages + s];
        forward_time_[s * chunks + c] = time.forward.value;
        // Backward passes come in the opposite order of chunks.
        backward_time_[s * chunks + chunks - 1 - c] = time.backward.value + time.weights.value;
      }
    }
    forward_end_.reset(new double[stages * std::size_t(passes_)]);
    backward_end_.reset(new double[stages * std::size_t(passes_)]);
  }

  double run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::int64_t s = 0; s < stages_count_; ++s) moved = run_stage(s) || moved;
      // Gradients come from the other side.
      for (std::int64_t s = stages_count_; s-- > 0;) moved = run_stage(s) || moved;
    }
    double end = 0;
    for (const Stage& stage : stages_) {
      check(stage.backward.done == passes_, "a pipeline's order leads to its end");
      end = std::max(end, stage.free);
    }
    return end;
  }

 private:
  // Passes of one kind: which is next, and of which chunk: as many of one as there are stages, then of the next.
  struct Progress {
    std::int64_t done = 0;
    std::int64_t of_chunk = 0;
    std::int64_t chunk = 0;

    void advance(std::int64_t stages, std::int64_t chunks) {
      ++done;
      if (++of_chunk < stages) return;
      of_chunk = 0;
      if (++chunk == chunks) chunk = 0;
    }
  };
  struct Stage {
    Progress forward, backward;
    std::int64_t held = 0;  // forward passes whose backward pass may wait
    double free = 0;
  };

  bool run_stage(std::int64_t s) {
    Stage& stage = stages_[std::size_t(s)];
    bool moved = false;
    while (true) {
      if (stage.forward.done < std::min(stage.held + stage.backward.done, passes_)) {
        if (!forward(s, stage)) return moved;
      } else {
        if (stage.backward.done == passes_ || !backward(s, stage)) return moved;
      }
      moved = true;
    }
  }
  bool forward(std::int64_t s, Stage& stage) {
    const Progress at = stage.forward;
    double ready = 0;
    if (s > 0) {
      if (stages_[std::size_t(s - 1)].forward.done <= at.done) return false;
      ready = forward_end_[place(s - 1, at.done)] + send_;
    } else if (at.chunk > 0) {
      if (stages_.back().forward.done <= at.done - stages_count_) return false;
      ready = forward_end_[place(stages_count_ - 1, at.done - stages_count_)] + send_;
    }
    stage.free = std::max(stage.free, ready) + forward_time_[std::size_t(s * chunks_ + at.chunk)];
    forward_end_[place(s, at.done)] = stage.free;
    stage.forward.advance(stages_count_, chunks_);
    return true;
  }
  bool backward(std::int64_t s, Stage& stage) {
    const Progress at = stage.backward;
    double ready = 0;
    if (s + 1 < stages_count_) {
      if (stages_[std::size_t(s + 1)].backward.done <= at.done) return false;
      ready = backward_end_[place(s + 1, at.done)] + send_;
    } else if (at.chunk > 0) {
      if (stages_.front().backward.done <= at.done - stages_count_) return false;
      ready = backward_end_[place(0, at.done - stages_count_)] + send_;
    } else {
      // The last chunk of all: its gradients start where its forward pass ended.
      const std::int64_t number = at.done + (chunks_ - 1) * stages_count_;
      if (stage.forward.done <= number) return false;
      ready = forward_end_[place(s, number)];
    }
    stage.free = std::max(stage.free, ready) + backward_time_[std::size_t(s * chunks_ + at.chunk)];
    backward_end_[place(s, at.done)] = stage.free;
    stage.backward.advance(stages_count_, chunks_);
    return true;
  }
  std::size_t place(std::int64_t s, std::int64_t number) const {
    return std::size_t(s * passes_ + number);
  }

  std::int64_t stages_count_, chunks_, passes_;
  double send_;
  std::vector<Stage> stages_;
  std::vector<double> forward_time_, backward_time_;  // of a stage's chunks, in its order
  std::unique_ptr<double[]> forward_end_,
      backward_end_;  // of a stage's passes, as far as they are done
};

}  // namespace

Seconds time_by_chunks(const Pipeline& pipeline) { return Seconds{Chunks(pipeline).run()}; }

}  // namespace engine
