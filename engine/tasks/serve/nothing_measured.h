// Runs that leave no figures, and what to tell of them.
#pragma once

#include <optional>
#include <string>

#include "engine/base/refusal.h"
#include "engine/serving/serving_sim.h"
#include "engine/tasks/serve/serve_pools.h"

namespace engine {

// Whether a stated warm-up or window has left nothing to measure, and what to state instead.
bool nothing_measured(const Load& load, const ServingSim& sim);
std::string why_nothing(const Load& load, const ServingSim& sim);

// Requests that no replica could hold, that were shed or that failed are counted; if that is all that were measured there are
// no figures.
std::optional<Refusal> no_figures(const Load& load, const ServePools& pools, const ServingSim& sim);

}  // namespace engine
