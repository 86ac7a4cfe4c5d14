// Rent and prices of a point whose devices and token rates are known.
#pragma once

#include <functional>

#include "engine/outcome.h"
#include "engine/scenario.h"

namespace engine {

// The share of its time that a deployment is on and paid for.
using OnShare = std::function<double(const Deployment&)>;

// Without `on` all are on always.
void report_price(const Scenario& scenario, TokensPerSecond prompt, Metrics& metrics,
                  const OnShare& on = nullptr);

}  // namespace engine
