// How far the figures of a served load may be off: because kernel times are, and first tokens for more reasons than these.
#pragma once

#include <functional>

#include "engine/outcome.h"
#include "engine/scenario.h"
#include "engine/serving/serving_sim.h"

namespace engine {

// Simulates the same load once more, with the same random numbers.
using Simulate = std::function<ServingStats&(const StepScale& scale)>;

// The steps of a phase are off together: nine times in ten by a factor between the ends of their
// interval (`interval_of` the kernels of the phase), and those of all phases at once, since they are
// made of the same kernels. The load is simulated at both ends. First tokens wait for more than steps: their interval is
// widened by what served loads of ten models showed. With an SLO, its probability is told as that of a lognormal factor of steps
// with these ends, and of another, independent one of first tokens.
// `predicted` are the figures of the run with steps as predicted, for as long as nothing else is simulated.
void report_intervals(const Scenario& scenario, ServingStats& predicted, const Simulate& simulate,
                      Outcome& outcome);

}  // namespace engine
