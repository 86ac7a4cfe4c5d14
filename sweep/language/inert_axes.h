// Axes that change nothing: `step.batch` where every point serves a load.
#pragma once

#include <vector>

#include "engine/base/result.h"
#include "sweep/language/reading.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// Notes a mistake for each axis whose leaves count in no point of the sweep (engine/leaf_use.h).
// `places` says where each axis was written. What a leaf may be is taken from everything that sets it,
// so an axis that counts in some point is never refused.
void check_inert_axes(const SpaceParts& parts, const std::vector<engine::Location>& places,
                      Reading& reading);

}  // namespace sweep
