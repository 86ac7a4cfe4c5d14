// The commands that do what is left of a run, ready to paste.
#pragma once

#include <string>

#include "tools/status/run_status.h"

namespace tools {

// A line for each command; none where those that do the work are at it.
std::string what_to_do(const std::string& folder, const RunStatus& status);

// What is held by workers that no longer run, once all pieces are taken and nobody works: nobody else will do it. Else nothing.
std::string held_by_the_dead(const std::string& folder, const RunStatus& status);

}  // namespace tools
