// Norms, activations and rotations that a library has no kernel for: passes of several kernels each.
#pragma once

#include "engine/model/model_spec.h"
#include "engine/training/passes/train_ops.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// All of them (train.fused: false), or rotations alone (train.fused_rotation: false).
void unfuse_passes(const ModelSpec& model, const TrainSettings& train, PassOps& ops);

}  // namespace engine
