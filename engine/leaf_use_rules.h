// Which fields count only where others say so: the list behind engine/leaf_use.h.
#pragma once

#include <vector>

#include "engine/leaf_use.h"

namespace engine {

std::vector<LeafUse> leaf_use_rules();

// Parts of it (engine/leaf_use_training.cc).
std::vector<LeafUse> training_uses();
std::vector<LeafUse> rollout_uses();

}  // namespace engine
