// What altered devices draw: powers that a sweep does not state follow those of the device's file.
#pragma once

#include <set>

#include "engine/scenario.h"

namespace sweep {

// Of a power of a device, the leaf that keeps what its file says; whoever states the power sets that to zero. -1: the leaf is no power.
int rated_power_of(int leaf);

// Writes what follows for the devices of a scenario, of which everything else is said.
void follow_rated_powers(engine::Scenario& scenario);

// Adds powers that follow from leaves that vary.
void add_powers_that_vary(std::set<int>& varied);

}  // namespace sweep
