// Weights of a chunk, and how replicas share out what they keep of them.
#pragma once

#include <cstdint>

#include "engine/model/model_shard.h"
#include "engine/training/pipeline/stages.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Replicas of dense weights and of experts.
struct StateSharing {
  double dense = 1;
  double experts = 1;
};
// Copies of a chunk in one pipeline are replicas, too.
StateSharing replicas_of(const Parallelism& parallel, const TrainSettings& train);
// The replicas among which states are divided (train.zero_group). Replicas of other groups hold the same.
StateSharing sharers_of(const Parallelism& parallel, const TrainSettings& train);

// Bytes of a weight of the layers that has no copy in 16 bits: it is kept as products take it (train.narrow_parameters), or frozen in a
// narrow format beside adapters (quant.weights). 0: as others are.
struct NarrowBytes {
  double dense = 0, experts = 0;
};
// Bytes of a weight as it is kept and, where it is trained, as it travels. Where few values of a row have a scale, a device that also needs
// the weight along its other side casts it from 16 bits (Megatron's MXFP8).
NarrowBytes kept_narrow(const ModelShard& shard, const TrainSettings& train);
NarrowBytes sent_narrow(const ModelShard& shard, const TrainSettings& train);

// Weights of a chunk on one device: all of them, and those that are trained.
struct ChunkStates {
  ChunkWeights all;
  ChunkWeights trained;
  bool wide = false;  // they are in 32 bits
  NarrowBytes kept, sent;
};

// Bytes of weights that have `wide` bytes each, but for those of layers that are narrow.
ChunkWeights bytes_of_all(const ChunkWeights& weights, double wide, const NarrowBytes& narrow);
// Bytes of the weights that passes read, frozen ones in their format, before replicas share anything out.
ChunkWeights weight_bytes(const ChunkStates& states, const TrainSettings& train);
// The same, as replicas send them; of trained weights alone, those that come back updated.
ChunkWeights sent_bytes(const ChunkStates& states, const TrainSettings& train);
ChunkWeights updated_bytes(const ChunkStates& states, const TrainSettings& train);

// How often gradients are scattered, per backward pass of a chunk. 0: once per step, since every replica keeps the sum of all (ZeRO 0 and
// 1). 1: after each pass, since none keeps it (ZeRO 2 and 3). In between: where chunks of a stage take turns, as many micro-batches as there
// are stages pass one chunk in a row, and ZeRO 2 keeps their sum until the row ends.
double scatters_per_pass(const TrainSettings& train, std::int64_t stages);
inline bool scatters_each_pass(const TrainSettings& train, std::int64_t stages) {
  return scatters_per_pass(train, stages) == 1;
}

// How a chunk's devices lie among others.
struct ChunkPlace {
  const ModelShard& shard;
  std::int64_t stages = 1;
};

// With the optimizer on the host gradients leave for it as a backward pass makes them (ZeRO-Offload), unless replicas have yet to
// sum them up once the last pass is done.
bool gradients_leave(const ChunkPlace& place, const TrainSettings& train);

}  // namespace engine
