// What of an exchange with experts a step waits for, where another micro-batch goes on beside it (train.batch_overlap).
#pragma once

#include "engine/base/units.h"
#include "engine/model/op_names.h"
#include "engine/step/overlap.h"

namespace engine {

// Parts of a layer: its experts, shared ones included; and what else it does. Embedding and output are of no layer.
bool is_of_experts(OpName name);
bool is_of_attention(OpName name);
// Results of experts on their way back to their tokens, or the gradients of them on their way there.
bool is_result(OpName name);

struct ExchangeTraffic {
  Seconds tokens;     // to their experts, and their gradients back
  Seconds results;    // back to their tokens
  Seconds gradients;  // of results, to the experts
};
struct LayerBlocks {
  Seconds attention, attention_back;
  Seconds experts;  // both ways
};

// What goes on beside an exchange follows from what waits for it: gradients of results travel beside the other micro-batch's attention
// forward, results beside its attention backward, tokens and their gradients beside the experts of both (DualPipe; Megatron's
// --overlap-moe-expert-parallel-comm). Neither block has time to spare for another's traffic.
Seconds exposed_exchange(const ExchangeTraffic& traffic, const LayerBlocks& beside,
                         const Taken& taken);

}  // namespace engine
