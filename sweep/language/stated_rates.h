// Does a device that is made from another, with a clock or multiprocessors of its own, have the peaks that its spec states?
#pragma once

#include <vector>

#include "engine/leaves/leaves.h"
#include "sweep/language/reading.h"

namespace sweep {

// All edits of a spec that is made from another: `whole` and what the spec states itself, which wins. A device that states rates holds
// them at its own clock and size, unless it says which these were stated for.
std::vector<Edit> made_from(const engine::Section& section, const Assignment& whole,
                            const std::vector<Assignment>& stated);

}  // namespace sweep
