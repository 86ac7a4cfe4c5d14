#include "engine/training/exchange_windows.h"

#include <algorithm>

namespace engine {

bool is_of_experts(OpName name) {
  return name == OpName::experts || name == OpName::quantize_experts ||
         name == OpName::shared_gate_up || name == OpName::shared_activation ||
         name == OpName::shared_down || name == OpName::shared_gate;
}

bool is_of_attention(OpName name) {
  return !is_of_experts(name) && name != OpName::embedding && name != OpName::final_norm &&
         name != OpName::logits && name != OpName::logits_gather && name != OpName::loss;
}

bool is_result(OpName name) { return name == OpName::expert_combine; }

Seconds exposed_exchange(const ExchangeTraffic& traffic, const LayerBlocks& beside,
                         const Taken& taken) {
  const auto longer = [&](Seconds travels, Seconds work) {
    return std::max(travels - work, longer_beside(work, travels, taken));
  };
  return longer(traffic.gradients, beside.attention) + longer(traffic.tokens, beside.experts) +
         longer(traffic.results, beside.attention_back);
}

}  // namespace engine
