// Passes over weights and their gradients beside the products of a micro-batch.
#pragma once

#include "engine/model/model_ops.h"
#include "engine/training/train_settings.h"

namespace engine {

// What a weight of a narrow product takes to be cast, once a step of so many replicas; frozen ones are narrow already.
void cast_weights(const TrainSettings& train, std::int64_t replicas, OpList& forward);

// New gradients in 16 bits are read, and those that are there are read and written, by a pass or by the product that makes them;
// `embeddings` of them are those of a table, which only a pass adds up.
void add_sums(const TrainSettings& train, std::int64_t replicas, double embeddings,
              OpList& weights);

}  // namespace engine
