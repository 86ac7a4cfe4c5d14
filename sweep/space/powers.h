// What altered devices draw: powers that a sweep does not state follow those of the device's file. And what a sweep takes back that states
// a power or a rent.
#pragma once

#include <set>
#include <span>

#include "engine/scenario.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// What is no longer so where a sweep states a leaf: the power that its device's file has, and that its powers or its rent are guesses.
std::span<const Edit> taken_back_by(int leaf);

// Writes what follows for the devices of a scenario, of which everything else is said.
void follow_rated_powers(engine::Scenario& scenario);

// Adds powers that follow from leaves that vary.
void add_powers_that_vary(std::set<int>& varied);

}  // namespace sweep
