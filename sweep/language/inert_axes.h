// What changes nothing: an axis `step.batch` where every point serves a load, a pool of readers where every point trains.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/reading.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// Notes a mistake for each axis whose leaves count in no point of the sweep, and for each of its values that is another one in
// every point (engine/leaves/leaf_use.h).
// `places` says where each axis was written. What a leaf may be is taken from everything that sets it,
// so an axis that counts in some point is never refused.
void check_inert_axes(const SpaceParts& parts, const std::vector<engine::Location>& places,
                      Reading& reading);

// Notes a mistake for each value of an axis that comes to the same as another one, because what they differ in is
// set by an axis over a narrower path: with `step.batch` an axis too, `step: [{batch: 4}, {batch: 5}]` makes
// every point twice, under labels that do not hold.
void check_shadowed_values(const SpaceParts& parts, const std::vector<engine::Location>& places,
                           Reading& reading);

// A field that the base states.
struct StatedField {
  std::string path;
  engine::Location where;
};

// Notes a mistake for each field of the base that no point has, because every value of an axis is a whole spec, which
// sets it: `device: {from: h100-sxm, rent: 2 USD/h}` beside an axis over `device`. A base that states a
// spec's name too is one that was written out, as in run.yaml.
void check_lost_fields(const SpaceParts& parts, const std::vector<StatedField>& base,
                       Reading& reading);

// One sentence for each field of the base that is not as by default and counts in no point: `step.context` where all points
// read prompts; and for each role (by its leaf `present`, with its place) that no point has: a draft that no method asks. No
// mistake, as a base may be written for more than one sweep. A base that was written out states everything.
std::vector<std::string> notes_on_idle_fields(const SpaceParts& parts,
                                              const std::vector<StatedField>& base,
                                              const std::map<int, engine::Location>& roles);

// The same for each override of the base of a sub-sweep (a branch of a `concat`) that counts in no point of that sub-sweep.
std::vector<std::string> notes_on_idle_overrides(const SpaceParts& parts,
                                                 const std::vector<engine::Location>& places);

// Notes a mistake for each role of the base that no task of the sweep has.
void check_inert_roles(const SpaceParts& parts, const std::map<int, engine::Location>& roles,
                       Reading& reading);

}  // namespace sweep
