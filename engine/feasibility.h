// What keeps a point from working that can be said before anything is simulated: devices, links, formats,
// how the model is split, and how long its sequences are. Memory is looked at later (engine/memory).
#pragma once

#include <optional>

#include "engine/base/refusal.h"
#include "engine/hardware/cluster.h"
#include "engine/scenario.h"

namespace engine {

// Devices of all replicas: those of the layout, and for a served load every copy of it.
double devices_in_use(const Scenario& scenario);

// The first thing that is in the way, or nothing.
std::optional<Refusal> feasibility_problem(const Scenario& scenario, const Fabric& fabric);

}  // namespace engine
