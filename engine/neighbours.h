// A point with two models on the same devices: each evaluated on its own, as slow as the other makes it.
#pragma once

#include <functional>

#include "engine/base/deployment_role.h"
#include "engine/kernels/copy.h"
#include "engine/outcome.h"
#include "engine/scenario.h"
#include "engine/serving/sequences/turns.h"

namespace engine {

// Whether the task of this point has a neighbour, and there is one.
bool has_neighbour(const Scenario& scenario);

// What one of two models notices of the other: its steps take longer by a factor, or it has the devices in turns.
struct NeighbourEffect {
  double slower = 1;
  Turns turns = {};

  bool alone() const { return slower == 1 && !turns.any(); }
};

// One of two models: a scenario without a neighbour, and which of the two it is. Where its run only serves a comparison, no figures are
// read but means and what its devices do.
struct OneOfTwo {
  DeploymentRole role = DeploymentRole::main;
  const Scenario& scenario;
  bool compared = false;
};

// Evaluates it beside what there would be.
using EvaluateAlone =
    std::function<void(const OneOfTwo& one, const NeighbourEffect& beside, Outcome& outcome)>;

// Task serve: each is slowed down by the share of the time in which the other has a step to run, which is found by turns
// until both agree. So either meets the other's mean, not its bursts. Where weights are swapped, turns are long: they go by the
// clock, and requests wait for theirs; `from_host` brings the weights.
void evaluate_neighbours(const Scenario& scenario, const MessageLine& from_host,
                         const EvaluateAlone& evaluate, Outcome& outcome);

}  // namespace engine
