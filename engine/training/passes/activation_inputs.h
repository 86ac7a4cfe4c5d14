// Inputs of activation functions that are kept in fp8 (train.narrow_activation_inputs).
#pragma once

#include "engine/model/model_ops.h"
#include "engine/model/model_shard.h"

namespace engine {

// Adds the passes that cast them: forward on their way to where they are kept, backward as they come back.
void cast_activation_inputs(const ModelShard& shard, OpList& ops);

}  // namespace engine
