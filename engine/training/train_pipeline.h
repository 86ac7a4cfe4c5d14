// The pipeline of a training step: its chunks, how long their passes take in it, and what they send one another.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/units.h"
#include "engine/training/chunk_kinds.h"
#include "engine/training/pipeline/chunk_places.h"
#include "engine/training/pipeline/pipeline_schedule.h"
#include "engine/training/pipeline/stage_pools.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

class TrainPipeline {
 public:
  TrainPipeline(const StagePools& pools, const TrainSettings& train, const ChunkKinds& chunks);

  Schedule schedule() const { return schedule_; }
  std::int64_t stages() const { return stages_; }
  std::int64_t micro_batches() const { return micro_batches_; }
  double passes_of_a_chunk() const;  // micro-batches through one copy of it
  ChunkPlaces places() const { return {schedule_, stages_, chunks_.size()}; }

  // The pipeline without times, and with them.
  Pipeline untimed();
  Pipeline timed();
  // Passes of a chunk on a stage by themselves, and in pairs of a forward and a backward pass that differ from these.
  struct Passes {
    PassCounts alone, in_pairs;
  };
  Passes passes_of(std::int64_t stage, std::int64_t chunk);

  // All micro-batches forward through all stages, and nothing else.
  Seconds forward_alone() const;

 private:
  bool waits_for_sends() const;
  void wait_for_sends();
  Seconds slowest_send() const;

  StagePools pools_;
  const TrainSettings& train_;
  const ChunkKinds& chunks_;
  std::int64_t stages_, micro_batches_;
  Schedule schedule_;
  bool in_pairs_;  // forward passes go on beside backward passes of other micro-batches
  std::vector<ChunkTime> times_;
};

}  // namespace engine
