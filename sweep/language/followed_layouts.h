// A layout that is stated in part: `prefill: {parallel: {tp: 8}}` beside a main deployment of 16 replicas has 16 replicas, too.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/inert_axes.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// One sentence for each deployment with replicas of its own of whose layout the base, or a value of an axis, states some and leaves some
// that may be above 1 there to the main deployment. `axes` says where each axis was written.
std::vector<std::string> notes_on_followed_layouts(const SpaceParts& parts,
                                                   const std::vector<StatedField>& base,
                                                   const std::vector<engine::Location>& axes);

}  // namespace sweep
