// Attention over sequences that several devices share (parallel.cp), each with a part of the tokens.
#pragma once

#include <cstdint>

#include "engine/model/model_ops.h"
#include "engine/training/train_settings.h"

namespace engine {

struct ContextSharing {
  ContextExchange exchange = ContextExchange::ring;
  std::int64_t devices = 1;
  std::int64_t stride = 1;  // from one of them to the next, in the order of devices
};

// Adds what becomes of attention (an AttentionPrefill) that one device does on its tokens. Every device has an early and a
// late part of each sequence, so that all have equally many query-key pairs; `attention` counts its share of them.
void add_shared_attention(const PlannedOp& attention, const ContextSharing& sharing, OpList& ops);

// Keys and values of other devices that one holds while a layer is at work, over those of its own tokens.
double foreign_context(const ContextSharing& sharing);

}  // namespace engine
