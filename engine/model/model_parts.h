// Parts that a model may not have, as fields ask for them.
#pragma once

#include "engine/base/counts.h"

namespace engine {

inline constexpr const Condition& with_experts =
    said<"the model has experts", is_above<"model.moe.experts", 0>>;
inline constexpr const Condition& with_shared_experts =
    said<"the model has experts that every token goes through (model.moe.shared_intermediate)",
         is_above<"model.moe.shared_intermediate", 0>>;
inline constexpr const Condition& with_latents =
    said<"the model has latent attention (model.mla.kv_rank)", is_above<"model.mla.kv_rank", 0>>;
inline constexpr const Condition& with_scans =
    said<"the model has scan layers (model.scan.state)", is_above<"model.scan.state", 0>>;

}  // namespace engine
