// What a point did when, as tracks: steps of replicas with their kernels and power, passes of a training pipeline.
#pragma once

#include "engine/outcome.h"
#include "engine/point_log.h"
#include "engine/scenario.h"
#include "tools/trace/trace_events.h"

namespace tools {

// Steps of a replica in a thread of their own (of a pipeline, in one for each batch in flight), where they are logged with
// kernels those inside; and the power that one device draws, where it states what it draws.
void add_steps(const engine::PointLog& log, const engine::Scenario& scenario, TraceEvents& events);

// Stages as processes, with their passes one after another, then what replicas exchange and the optimizer. `most` passes
// are shown.
void add_passes(const engine::PointLog& log, const engine::Metrics& metrics, std::size_t most,
                TraceEvents& events);

}  // namespace tools
