// What training keeps in the memory of one device, term by term.
#pragma once

#include "engine/base/units.h"
#include "engine/training/passes/chunk_states.h"
#include "engine/training/passes/kept_activations.h"
#include "engine/training/pipeline/stages.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

struct TrainMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;  // of all passes that wait for their backward pass
  Bytes at_work;      // activations of the pass at work besides these
  Bytes logits;
  Bytes gathered;   // weights of other replicas, and gradients that are not yet theirs (ZeRO 3)
  Bytes context;    // keys and values of devices that share the sequence, while a layer needs them
  Bytes reference;  // weights of models that only score
  Bytes reserved;
  Bytes host;              // in the host's memory, for this device
  Bytes host_reference;    // of that: models that only score
  Bytes host_activations;  // of that: activations that wait there for their backward pass
  Bytes total() const {
    return weights + gradients + optimizer + activations + at_work + logits + gathered + context +
           reference + reserved;
  }
};

// What ZeRO 3 gathers of one chunk: until its backward pass is done, and besides that while a layer, the output or the embedding
// is at work: its weights, those of the layers ahead of it, and its gradients. ZeRO 2 has the gradients only.
struct Gathered {
  double kept = 0;
  double layer = 0, output = 0, embedding = 0;
};

// Weights, gradients and optimizer states of one chunk.
struct StateMemory {
  Bytes weights, gradients, optimizer, host;
  Bytes reference, host_reference;
  Bytes row;        // whole gradients, while a row of micro-batches passes the chunk (ZeRO 2)
  Bytes unit;       // gradients of the largest layer, or of the embedding or the output
  Bytes embedding;  // gradients of the embedding, which are made last
  Gathered gathered;
};
StateMemory state_memory(const ChunkStates& states, const ChunkPlace& place,
                         const TrainSettings& train);

// Memory of a stage: all its chunks, each with the passes that wait at the same time.
class StageMemory {
 public:
  void add(const StateMemory& states, const KeptActivations& activations, double passes);
  // `passes`: of each chunk in a step.
  TrainMemory sum(const TrainSettings& train, double passes) const;

 private:
  Bytes beyond_activations(const TrainSettings& train, const TrainMemory& all) const;

  TrainMemory sum_;
  Bytes unit_, embedding_;  // of the gradients
  Bytes layer_;             // of layers that are computed again: what they take at work
  Bytes kept_;              // of what is gathered
  Bytes row_, other_row_;   // whole gradients of the chunk that has most, and of the next one
  Bytes new_gradient_;      // on its way to its sum
};

}  // namespace engine
