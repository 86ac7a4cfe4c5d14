// Which fields count only where others say so: the list behind engine/leaves/leaf_use.h.
#pragma once

#include <vector>

#include "engine/leaves/leaf_use.h"

namespace engine {

std::vector<LeafUse> leaf_use_rules();
std::vector<ValueUse> value_use_rules();

// Parts of it (engine/leaves/leaf_use_training.cc).
std::vector<LeafUse> training_layout_uses();
std::vector<LeafUse> training_uses();
std::vector<LeafUse> rollout_uses();
// Parts of the list.
std::vector<LeafUse> attention_uses();
std::vector<LeafUse> tier_uses();
std::vector<ValueUse> ordering_values();
std::vector<ValueUse> schedule_values();
std::vector<LeafUse> link_uses();
std::vector<LeafUse> model_uses();
std::vector<LeafUse> expert_uses();
std::vector<LeafUse> speculation_uses();
std::vector<LeafUse> draft_uses();
std::vector<LeafUse> neighbour_uses();
std::vector<LeafUse> adapter_uses();
std::vector<LeafUse> clock_uses();
std::vector<LeafUse> image_uses();
std::vector<LeafUse> array_uses();
std::vector<LeafUse> retrieval_uses();
std::vector<LeafUse> message_uses();

}  // namespace engine
