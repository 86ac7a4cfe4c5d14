// Which chunks of layers lie on which stage of a pipeline.
#pragma once

#include <cstdint>

#include "engine/training/settings/train_choices.h"

namespace engine {

struct ChunkPlaces {
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t stages = 1;
  std::int64_t chunks = 1;

  // Chunks of each stage. A chunk of dualpipe lies on two stages.
  std::int64_t on_each() const { return is_dual(schedule) ? 2 : chunks / stages; }
  // Data goes round the stages in turn; or one chunk lies as far from the first as the other from the last.
  std::int64_t chunk(std::int64_t stage, std::int64_t number) const {
    if (is_dual(schedule)) return number == 0 ? stage : chunks - 1 - stage;
    return number * stages + stage;
  }
  // One of the stages that have a chunk.
  std::int64_t stage_of(std::int64_t chunk) const {
    if (is_dual(schedule)) return chunk < stages ? chunk : chunks - 1 - chunk;
    return chunk % stages;
  }

  template <class Visit>
  void each(std::int64_t stage, Visit&& visit) const {
    for (std::int64_t i = 0; i < on_each(); ++i) visit(chunk(stage, i));
  }
};

}  // namespace engine
