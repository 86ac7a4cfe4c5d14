// What does an engine set by itself where it is told nothing?
#pragma once

#include <optional>

#include "engine/scenario.h"

namespace engine {

// Most tokens and sequences of a step, by the device that the engine finds.
StepLimits own_limits(PolicyName policy, const Device& device);

// The scenario with these limits in every deployment that leaves them to its engine. `filled` keeps it, where there is such a one.
const Scenario& with_own_limits(const Scenario& scenario, std::optional<Scenario>& filled);

}  // namespace engine
