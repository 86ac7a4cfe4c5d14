// A point with two models on the same devices: each evaluated on its own, as slow as the other makes it.
#pragma once

#include <functional>

#include "engine/outcome.h"
#include "engine/scenario.h"

namespace engine {

// Whether the task of this point has a neighbour, and there is one.
bool has_neighbour(const Scenario& scenario);

// Evaluates a scenario that has no neighbour, with steps that take so many times as long.
using EvaluateAlone =
    std::function<void(const Scenario& scenario, double slower, Outcome& outcome)>;

// Task serve: each is slowed down by the share of the time in which the other has a step to run, which is found by turns
// until both agree. So either meets the other's mean, not its bursts.
void evaluate_neighbours(const Scenario& scenario, const EvaluateAlone& evaluate, Outcome& outcome);

}  // namespace engine
