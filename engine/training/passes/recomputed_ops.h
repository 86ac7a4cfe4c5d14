// Which operations of a forward pass are done once more before the backward pass.
#pragma once

#include "engine/model/model_ops.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Of a chunk with so many layers.
void recomputed_ops(const OpList& forward, double layers, const TrainSettings& train,
                    OpList& again);

}  // namespace engine
