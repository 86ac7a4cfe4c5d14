// Low-rank adapters beside frozen products: their operations and their weights.
#pragma once

#include "engine/model/adapters.h"
#include "engine/model/model_ops.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Bytes of a frozen weight in four bits with its share of twice-quantised scales (Dettmers et al., QLoRA, 2023: 64
// weights share a scale of 8 bits, 256 of those share one of 32).
inline constexpr double kFourBitBytes = (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8;

// Appends a forward operation with what `train` puts beside it: the expansion of its weights from four bits, and its
// adapters. The stream between layers is split over `split` devices by sequence.
void add_with_adapters(const PlannedOp& planned, const TrainSettings& train, double split,
                       OpList& ops);

// Leaves of the gradients of weights only those that are trained.
void keep_adapters(OpList& weights);

}  // namespace engine
