// The operations of one pass of a micro-batch through one chunk of layers, forward and backward.
#pragma once

#include <cstdint>

#include "engine/model/model_ops.h"
#include "engine/model/model_shard.h"
#include "engine/training/pipeline/stages.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

struct PassOps {
  OpList forward;
  OpList recomputed;  // of the forward pass, once more before the backward pass
  OpList inputs;      // gradients of what came in
  OpList weights;     // gradients of weights, or of adapters
  // Tokens to their experts and back, where that goes on beside another micro-batch; else it is part of the passes.
  OpList exchange, exchange_back;
};
enum class ExchangeOps : std::uint8_t { in_passes, apart };

// Without the way to the next stage.
void pass_ops(const ModelShard& shard, const LayerChunk& chunk, const TrainSettings& train,
              PassOps& ops, ExchangeOps exchange = ExchangeOps::in_passes);

}  // namespace engine
