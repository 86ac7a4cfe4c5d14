// Low-rank adapters beside the products of a model.
#pragma once

#include <cstdint>

#include "engine/base/units.h"
#include "engine/model/lora_targets.h"
#include "engine/model/model_ops.h"

namespace engine {

// Whether a product of this name has adapters; and whether it is one of attention or of an MLP at all.
bool has_adapter(OpName name, LoraTargets targets);
// Products that one kernel does together have an adapter each.
double joined_products(OpName name);

// Adds what adapters of that rank do beside a product, `adapters` different ones among its rows; nothing where it has none.
void add_adapter(const PlannedOp& product, LoraTargets targets, std::int64_t rank, double adapters,
                 OpList& ops);

// Weights of the adapters among `ops`, one of each.
double adapter_weights(const OpList& ops);

// Bytes of one adapter on a device of the fullest stage.
Bytes adapter_bytes(const ModelShard& shard);

}  // namespace engine
