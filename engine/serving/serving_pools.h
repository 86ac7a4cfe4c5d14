// How the pools of a fleet begin a run, and what the replicas of each have in common in it.
#pragma once

#include "engine/serving/mechanisms/fleet.h"
#include "engine/serving/mechanisms/lockstep.h"
#include "engine/serving/mechanisms/tiers_below.h"

namespace engine {

// Says which replicas and lanes belong to which pool, and readies the tables of step times.
void lay_out_pools(Fleet& fleet);

// What a replica may have from mechanisms, which have begun, and what all of them use by turns.
struct PoolParts {
  Lockstep& lockstep;
  TiersBelow& tiers;
  StepPlan& scratch_plan;
};
void start_pools(Fleet& fleet, const PoolParts& parts);

}  // namespace engine
