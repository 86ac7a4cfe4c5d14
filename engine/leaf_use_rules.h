// Which fields count only where others say so: the list behind engine/leaf_use.h.
#pragma once

#include <vector>

#include "engine/leaf_use.h"

namespace engine {

std::vector<LeafUse> leaf_use_rules();

}  // namespace engine
