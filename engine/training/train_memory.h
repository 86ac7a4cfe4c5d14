// What training keeps in the memory of one device, term by term.
#pragma once

#include "engine/base/units.h"
#include "engine/training/kept_activations.h"
#include "engine/training/stages.h"
#include "engine/training/train_settings.h"

namespace engine {

struct TrainMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // of all passes that wait for their backward pass
  Bytes at_work;      // activations of the pass at work besides these
  Bytes logits;
  Bytes gathered;  // weights of other replicas, and gradients that are not yet theirs (ZeRO 3)
  Bytes context;   // keys and values of devices that share the sequence, while a layer needs them
  Bytes reserved;
  Bytes host;  // in the host's memory, for this device
  Bytes total() const {
    return weights + gradients + optimizer + activations + at_work + logits + gathered + context +
           reserved;
  }
};

// Replicas of dense weights and of experts.
struct StateSharing {
  double dense = 1;
  double experts = 1;
};
StateSharing replicas_of(const Parallelism& parallel);
// Those among which states are shared out (train.zero_group); replicas of other groups hold the same.
StateSharing sharers_of(const Parallelism& parallel, const TrainSettings& train);

// Weights of a chunk on one device: all of them, and those that are trained.
struct ChunkStates {
  ChunkWeights all;
  ChunkWeights trained;
  bool wide = false;  // they are in 32 bits
};

// Bytes of the weights that passes read, frozen ones in their format, before replicas share anything out.
ChunkWeights weight_bytes(const ChunkStates& states, const TrainSettings& train);

// Gradients that replicas share out are scattered after each pass, since nobody keeps a sum of all of them. Pipelines with ZeRO 2
// scatter those of a stage after its last pass.
bool scatters_each_pass(const TrainSettings& train, std::int64_t stages);

// How a chunk's devices lie among others.
struct ChunkPlace {
  const ModelShard& shard;
  std::int64_t stages = 1;
};

// With the optimizer on the host gradients leave for it as a backward pass makes them (ZeRO-Offload), unless replicas have yet to
// sum them up once the last pass is done.
bool gradients_leave(const ChunkPlace& place, const TrainSettings& train);

// What ZeRO 3 gathers of one chunk: until its backward pass is done, and besides that while a layer, the output or the embedding
// is at work: its weights, those of the layer beside it, and its gradients.
struct Gathered {
  double kept = 0;
  double layer = 0, output = 0, embedding = 0;
};

// Weights, gradients and optimizer states of one chunk.
struct StateMemory {
  Bytes weights, gradients, optimizer, host;
  Gathered gathered;
};
StateMemory state_memory(const ChunkStates& states, const ChunkPlace& place,
                         const TrainSettings& train);

// Of a stage: all its chunks, each with so many passes that wait at once.
class StageMemory {
 public:
  void add(const StateMemory& states, const KeptActivations& activations, double passes);
  TrainMemory sum() const;

 private:
  TrainMemory sum_;
  Bytes kept_;  // of what is gathered
};

}  // namespace engine
