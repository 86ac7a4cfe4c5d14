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
  Bytes
      gathered;  // weights of other replicas, while a layer needs them or until its backward pass (ZeRO 3)
  Bytes context;  // keys and values of devices that share the sequence, while a layer needs them
  Bytes reserved;
  Bytes host;                   // in the host's memory, for this device
  bool stays_gathered = false;  // what is gathered lies there until its backward pass
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
};

// Bytes of the weights that passes read, frozen ones in their format, before replicas share anything out.
ChunkWeights weight_bytes(const ChunkStates& states, const TrainSettings& train);

// Gradients that replicas share out are scattered after each pass, since nobody keeps a sum of all of them. Pipelines with ZeRO 2
// scatter those of a stage after its last pass.
bool scatters_each_pass(const TrainSettings& train, std::int64_t stages);

// Weights, gradients, optimizer states and gathered weights of one chunk.
TrainMemory state_memory(const ChunkStates& states, const LayerChunk& chunk,
                         const Parallelism& parallel, const TrainSettings& train);

// Of a stage: another of its chunks, with so many passes of it that wait at once.
void add_chunk(const TrainMemory& states, const KeptActivations& activations, double passes,
               TrainMemory& sum);

}  // namespace engine
