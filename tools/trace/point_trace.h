// One point as a trace: its requests and replicas over time, or its kernels.
#pragma once

#include <cstddef>

#include "engine/outcome.h"
#include "tools/trace/trace_events.h"

namespace tools {

// Requests of the outcome as slices: a lane of the queue, then one of its replica with prompt and answer
// in it, joined by arrows; where another deployment read the prompt, a slice there too. Moments of the
// timeline as counters. The first `most` requests to arrive are shown.
void add_served(const engine::Outcome& outcome, std::size_t most, TraceEvents& events);

// Kernels of a step, a request or an iteration, end to end, phase by phase: how much of the time is
// whose. Calls of one kernel are one slice; in the machine they alternate, layer by layer.
void add_kernels(const engine::Outcome& outcome, TraceEvents& events);

}  // namespace tools
