// What training keeps in the memory of one device, term by term, where it peaks.
#pragma once

#include <cstdint>

#include "engine/base/units.h"
#include "engine/model/model_shard.h"
#include "engine/training/stages.h"
#include "engine/training/train_settings.h"

namespace engine {

struct TrainMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // of all passes that wait for their backward pass, and of the one at work
  Bytes logits;
  Bytes gathered;  // weights of other replicas, while a layer needs them (ZeRO 3)
  Bytes reserved;
  Bytes total() const {
    return weights + gradients + optimizer + activations + logits + gathered + reserved;
  }
};

// Of one stage: its chunks, and for each how many passes wait at once.
struct StageLoad {
  const StageSpan& span;
  double passes = 1;
};
TrainMemory chunk_memory(const ModelShard& shard, const StageLoad& load,
                         const TrainSettings& train);

// Replicas over which states of dense weights and of experts are shared out.
struct StateSharing {
  double dense = 1;
  double experts = 1;
};
StateSharing replicas_of(const Parallelism& parallel);

}  // namespace engine
