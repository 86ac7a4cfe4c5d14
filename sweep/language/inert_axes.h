// What changes nothing: an axis `step.batch` where every point serves a load, a pool of readers where every point trains.
#pragma once

#include <map>
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

// Notes a mistake for each value of an axis that comes to the same as another one, because what they differ in is
// set by an axis over a narrower path: with `step.batch` an axis too, `step: [{batch: 4}, {batch: 5}]` makes
// every point twice, under labels that do not hold.
void check_shadowed_values(const SpaceParts& parts, const std::vector<engine::Location>& places,
                           Reading& reading);

// Notes a mistake for each role of the base (by its leaf `present`, with its place) that no task of the sweep has.
void check_inert_roles(const SpaceParts& parts, const std::map<int, engine::Location>& roles,
                       Reading& reading);

}  // namespace sweep
