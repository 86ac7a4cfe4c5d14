// The front door: one point in, one outcome out. Pure, deterministic, safe from any thread.
#pragma once

#include "engine/base/work_meter.h"
#include "engine/outcome.h"
#include "engine/resources.h"
#include "engine/scenario.h"
#include "engine/scratch.h"

namespace engine {

Outcome evaluate(const Scenario& scenario);

// The same into an outcome whose memory is reused: no allocation once its vectors have grown.
void evaluate_into(const Scenario& scenario, Outcome& outcome);

// With the traces and calibrations that scenarios name; without them a point has rooflines only.
Outcome evaluate(const Scenario& scenario, const Resources& resources);
void evaluate_into(const Scenario& scenario, const Resources& resources, Outcome& outcome);

// Within the meter's budget: a point that would take more, that runs out of memory or that throws is an outcome
// with status `failed`. Throws WorkStopped where the meter was told to stop, and nothing else. The scratch is what
// a thread keeps from point to point.
void evaluate_into(const Scenario& scenario, const Resources& resources, Outcome& outcome,
                   WorkMeter& work, Scratch& scratch);

}  // namespace engine
