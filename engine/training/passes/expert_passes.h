// What experts take beside their products where a library has no kernel for a model's activation and biases, and their exchange.
#pragma once

#include "engine/model/model_ops.h"

namespace engine {

// `experts` is an operation whose products are a Moe.
void add_expert_passes(const PlannedOp& experts, OpList& ops);

// Moves the exchange of tokens from the operations of a pass to a list of its own.
void take_exchange(OpList& ops, OpList& exchange);

}  // namespace engine
