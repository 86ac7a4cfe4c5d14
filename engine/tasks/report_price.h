// Rent and prices of a point whose devices and token rates are known.
#pragma once

#include <span>

#include "engine/outcome.h"
#include "engine/scenario.h"

namespace engine {

// `on`: the share of its time that each deployment is on and paid for, in the order of each_deployment; those
// beyond the list are on with the main one; empty: all are on always.
void report_price(const Scenario& scenario, TokensPerSecond prompt, Metrics& metrics,
                  std::span<const double> on = {});

}  // namespace engine
