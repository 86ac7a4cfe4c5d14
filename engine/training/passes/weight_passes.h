// Passes over weights and their gradients beside the products of a micro-batch.
#pragma once

#include <cstdint>

#include "engine/model/model_ops.h"
#include "engine/training/passes/chunk_states.h"
#include "engine/training/passes/train_ops.h"
#include "engine/training/pipeline/stages.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// How long narrow copies of weights live: for a step, from a forward pass to its backward pass, or for a layer's turn in either
// (ZeRO 3 drops what it gathered, and its copies with it).
enum class NarrowCopies : std::uint8_t { a_step, a_micro_batch, a_pass };
NarrowCopies narrow_copies(const Parallelism& parallel, const TrainSettings& train);

// Weights that are wider than what they meet are cast to it: the product takes both sides in one format.
void meet_in_one_format(Method method, PlannedOp& product);

// Bytes of the narrow copies of a chunk's weights that stay for a step: as they are, and turned round (train.transpose_cache). Others
// are gone after their layer's turn, as compilers make them again from weights in 16 bits for the backward pass. Weights that
// are kept narrow, as parameters or frozen beside adapters, have a copy turned round only; layers before the first trained one have none.
double copy_bytes(const ChunkStates& states, const ModelShard& shard, const TrainSettings& train);

// Weights of narrow products are cast, and turned round for gradients, as often as their copies are made; without a cache, turned round for each pass. `backward`: those that
// gradients pass through.
void cast_weights(const ModelShard& shard, const TrainSettings& train, const OpList& backward,
                  PassOps& ops);

// New gradients in 16 bits are read, and those that are there are read and written, by a pass or by the product that makes them;
// those of embeddings only by a pass.
void add_sums(const ModelShard& shard, const LayerChunk& chunk, const TrainSettings& train,
              OpList& weights);

}  // namespace engine
