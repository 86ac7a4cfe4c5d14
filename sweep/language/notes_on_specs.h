// What is said of whole specs that a sweep writes out itself and that are not what they seem.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// One sentence for each axis over whole specs of which two values differ only in what counts in no point: devices with links of their
// own beside a cluster that has links.
std::vector<std::string> notes_on_equal_specs(const SpaceParts& parts,
                                              const std::vector<engine::Location>& places);

// The same for each spec that is given a name and is made from nothing: what it does not state is that of the one before it.
std::vector<std::string> notes_on_named_specs(const SpaceParts& parts,
                                              const std::vector<engine::Location>& places);

}  // namespace sweep
