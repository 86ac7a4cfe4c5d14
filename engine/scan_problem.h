// What is not modelled of models with scan layers.
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/scenario.h"

namespace engine {

std::optional<Refusal> scan_problem(const Scenario& scenario);

}  // namespace engine
