// Turns a finished serving simulation into the figures of a point.
#pragma once

#include "engine/outcome.h"
#include "engine/scenario.h"
#include "engine/serving/serving_sim.h"
#include "engine/tasks/serve/serve_pools.h"

namespace engine {

// The limits that count: those of the capacity search, where there is one.
const Slo& served_slo(const Scenario& scenario);

struct ServedMeans {
  Seconds ttft, tpot, e2e;
  RequestsPerSecond throughput;
  TokensPerSecond output;
};
ServedMeans served_means(const ServingStats& stats);

void report_serving(const Scenario& scenario, const ServePools& pools, ServingSim& sim,
                    Outcome& outcome);

}  // namespace engine
