// Work of a simulation, as it was logged, to the single steps of a trace.
#pragma once

#include <span>

#include "engine/point_log.h"
#include "engine/serving/figures/step_log.h"
#include "engine/serving/replica/journey.h"

namespace engine {

// In the order of their start. Stretches are set out step by step, by the closed form they were timed with.
void trace_steps(const StepLog& work, std::span<const PoolSetup> pools, PointLog& log);

}  // namespace engine
