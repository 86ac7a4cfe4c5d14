// Runs that leave no figures, and what to tell of them.
#pragma once

#include <optional>
#include <string>

#include "engine/base/refusal.h"
#include "engine/serving/serving_sim.h"
#include "engine/tasks/serve/serve_pools.h"

namespace engine {

// Stated settings may leave nothing to measure; automatic ones do so only where hardly any request is answered (`none_answered`).
bool nothing_measured(const Load& load, const ServingSim& sim);
std::string why_nothing(const Load& load, const ServingSim& sim);

// Requests that no replica could hold, that were shed or that failed are counted; if that is all of them, or all that would be
// measured, there are no figures.
std::optional<Refusal> none_answered(const Load& load, const ServePools& pools,
                                     const ServingSim& sim);

}  // namespace engine
