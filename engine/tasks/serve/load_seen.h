// How much of its load a run has seen, and how much of what came it could not take.
#pragma once

#include <cstdint>

#include "engine/outcome.h"
#include "engine/serving/serving_sim.h"
#include "engine/workload/load.h"
#include "engine/workload/request_source.h"
#include "engine/workload/trace.h"

namespace engine {

// A load as a run met it.
struct PlayedLoad {
  const Load& load;
  const Trace* trace = nullptr;
  LoadLevel level;
  std::uint64_t seed = 0;
};

void report_load_seen(const PlayedLoad& played, const ServingSim& sim, Metrics& metrics);

// Whether a run at a rate (of requests, or of sessions) deals with what the rate brings: it answers as much in its measured part, or says
// why not, but for 5% and what chance brings. A run that is over too soon does not, however fast each answer is.
bool carries(const PlayedLoad& played, const ServingSim& sim);

}  // namespace engine
