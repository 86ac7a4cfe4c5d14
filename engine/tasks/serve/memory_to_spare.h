// Whether a run would have gone the same way with more memory.
#pragma once

#include "engine/scenario.h"
#include "engine/serving/serving_sim.h"

namespace engine {

// Everybody who was inside at one time had fitted in with all tokens they have in the end, so no step was planned otherwise for
// lack of blocks. False where the load, its length or the cache follow from how many blocks there are.
bool memory_to_spare(const Scenario& scenario, const PoolSetup& pool, const RunPlan& plan,
                     const ServingSim& sim);

}  // namespace engine
