// What passes keep in memory for their backward passes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/model/model_shard.h"
#include "engine/training/pipeline/stages.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Bytes of one pass of a micro-batch through a chunk.
struct KeptActivations {
  double kept = 0;       // until its backward pass is done
  double at_work = 0;    // of layers that are computed again, where layers are
  double offloaded = 0;  // kept in the host's memory,
  double in_flight = 0;  // and of these on their way there or back
  double logits = 0;
  double context = 0;  // keys and values of devices that share the sequence, for the layer at work
  double new_gradient = 0;  // of the layers' widest matrix, beside the sum that a pass adds it to
};
KeptActivations kept_activations(const ModelShard& shard, const LayerChunk& chunk,
                                 const TrainSettings& train);

// Weights of the widest matrix of an MLP on one device; experts that one kernel multiplies are one matrix.
struct WidestMatrix {
  double dense = 0, experts = 0;
};
WidestMatrix widest_matrix(const ModelShard& shard, const TrainSettings& train);

// Layers of a chunk with `all` that a setting speaks of: so many, or all of them where it says 0.
inline double layers_of(std::int64_t stated, double all) {
  return stated == 0 ? all : std::min(double(stated), all);
}

// Tokens of a micro-batch on one device.
inline double tokens_of_a_pass(const TrainSettings& train, const Parallelism& parallel) {
  return double(train.micro_batch) * double(train.sequence) / double(parallel.cp);
}

}  // namespace engine
