// Deployments beside the main one (engine::Role), as axes and the base write them: a role is like the main
// deployment of its point, axes included, but for what is stated of the role.
#pragma once

#include <set>
#include <string_view>

#include "sweep/space/space_parts.h"

namespace sweep {

// The leaf that says whether the role is there in which this path lies; kNone: it lies in none.
int role_of(std::string_view path);

// Whether the base states the leaf of a role, which then is like the main deployment's in no point.
bool is_stated(const SpaceParts& parts, int leaf);

// Fills in what follows for roles once all axes are known: which role each axis is about, which roles any
// point may have, the base's own roles, and which of their leaves differ from point to point.
void complete_roles(SpaceParts& parts, std::set<int>& varied);

}  // namespace sweep
