// What does an engine set by itself where it is told nothing?
#pragma once

#include <cstdint>
#include <optional>

#include "engine/scenario.h"

namespace engine {

// Most tokens and sequences of a step.
struct StepLimits {
  std::int64_t tokens = 1;
  std::int64_t sequences = 1;
};

// By the device that the engine finds.
StepLimits own_limits(const Device& device);

// The scenario with these limits in every deployment that leaves them to its engine. `filled` keeps it, where there is such a one.
const Scenario& with_own_limits(const Scenario& scenario, std::optional<Scenario>& filled);

}  // namespace engine
