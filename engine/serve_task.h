// Task `serve`: a load of requests over time, and what its operator sees.
#pragma once

#include "engine/outcome.h"
#include "engine/resources.h"
#include "engine/scenario.h"
#include "engine/step/step_time.h"

namespace engine {

// Mean tokens of a request of this load: what memory is reported for, and estimates start from. One
// and one where the load cannot be made.
struct TypicalRequest {
  double prompt = 1;
  double output = 1;
};
TypicalRequest typical_request(const Scenario& scenario, const Resources& resources);

// Memory has been reported (outcome.metrics.kv_capacity_tokens) and the model fits.
void evaluate_serve(const Scenario& scenario, const Resources& resources,
                    const StepContext& context, Outcome& outcome);

// Drops what this thread's simulations keep to use again: after a point that broke off it may be large.
void forget_simulation();

}  // namespace engine
