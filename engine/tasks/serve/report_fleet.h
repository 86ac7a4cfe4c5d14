// Figures of failures, classes, tenants and sessions of a served load.
#pragma once

#include <cstddef>
#include <span>

#include "engine/outcome.h"
#include "engine/scenario.h"
#include "engine/serving/serving_sim.h"

namespace engine {

void report_fleet(const Scenario& scenario, std::span<const PoolSetup> pools, ServingSim& sim,
                  Metrics& metrics);

}  // namespace engine
