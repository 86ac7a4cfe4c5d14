// One point as text: what it is, what came out, and where the time went.
#pragma once

#include <string>

#include "engine/outcome.h"
#include "engine/scenario.h"

namespace engine {

std::string explain(const Scenario& scenario, const Outcome& outcome);

}  // namespace engine
