// How much longer attention takes in kernels of earlier generations, and for heads whose widths its tiles do not divide.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/hardware/device.h"
#include "engine/model/model_shard.h"
#include "engine/training/settings/train_settings.h"

namespace engine {

// Writes the pace of `generation` on such a device, for the model's heads, into the shard; or says why there is none.
std::optional<Refusal> set_attention_pace(AttentionGeneration generation, const Device& device,
                                          ModelShard& shard);

}  // namespace engine
