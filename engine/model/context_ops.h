// Attention and scans over sequences that several devices share (parallel.cp), each with a part of the tokens.
#pragma once

#include <optional>
#include <string_view>

#include "engine/base/refusal.h"
#include "engine/model/batch_shape.h"
#include "engine/model/context_sharing.h"
#include "engine/model/model_ops.h"
#include "engine/model/model_spec.h"
#include "engine/model/parallelism.h"

namespace engine {

// What one of the devices that share the prompts of a step has of them.
BatchShape share_of(const BatchShape& batch, const ContextSharing& sharing);

// Adds what becomes of attention (an AttentionPrefill) that one device does on its tokens. Every device has an early and a
// late part of each sequence, so that all have equally many query-key pairs; `attention` counts its share of them.
void add_shared_attention(const PlannedOp& attention, const ContextSharing& sharing, OpList& ops);

// Adds what becomes of a scan of prompts. A state goes through a sequence token by token, so whatever attention does, each device
// gets whole sequences of some heads and gives back what comes of its tokens (as Megatron-Core's Mamba layers do).
void add_shared_scan(const PlannedOp& scan, const ContextSharing& sharing, OpList& ops);

// Why a model's attention cannot be shared like this, or nothing; `field` is where the exchange was chosen.
std::optional<Refusal> sharing_problem(const ModelSpec& model, const Parallelism& parallel,
                                       ContextExchange exchange, std::string_view field);

// Keys and values of other devices that one holds while a layer is at work, over those of its own tokens; in training
// their gradients lie beside them.
double foreign_context(const ContextSharing& sharing);

}  // namespace engine
