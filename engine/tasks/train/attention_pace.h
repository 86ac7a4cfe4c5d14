// How much longer earlier generations of attention's kernels take than the fastest ones of a GPU.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/hardware/device.h"
#include "engine/model/model_shard.h"
#include "engine/training/train_settings.h"

namespace engine {

// Writes the pace of `generation` on such a device into the shard; or says why there is none.
std::optional<Refusal> set_attention_pace(AttentionGeneration generation, const Device& device,
                                          ModelShard& shard);

}  // namespace engine
