// Rent and prices of a point whose devices and token rates are known.
#pragma once

#include "engine/outcome.h"
#include "engine/scenario.h"

namespace engine {

void report_price(const Scenario& scenario, TokensPerSecond prompt, Metrics& metrics);

}  // namespace engine
