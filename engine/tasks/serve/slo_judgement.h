// Latencies of a finished simulation, and whether they keep what was promised.
#pragma once

#include <string>

#include "engine/base/units.h"
#include "engine/serving/figures/serving_stats.h"
#include "engine/serving/settings/slo.h"

namespace engine {

struct Latency {
  Seconds mean, p50, p90, p95, p99;
};
Latency latency_of(Samples& samples);
// Latencies of the gaps between tokens; no values where there are none.
Latency gap_latency(const ServingStats& stats);

// Whether every stated mean or percentile was seen and is within its limit. Requests that were given up (refused, shed or failed)
// are later than any limit: a mean allows none of them, a percentile as many as it leaves out.
bool meets(const Slo& slo, ServingStats& stats);

// A limit that is missed, and by how much or by whom; empty where none is.
std::string missed_limit(const Slo& slo, ServingStats& stats);

// Whether there is a limit on a single latency.
bool limited(const LatencyLimits& limits);

// The same for limits on the time between tokens alone.
bool meets_between_tokens(const Slo& slo, ServingStats& stats);

// So many times as long may all first tokens take before a limit on them, or on whole answers, is missed; 0 where it is missed
// anyway. Of an answer that takes longer by its first token alone, the mean wait counts.
double first_token_room(const Slo& slo, ServingStats& stats);

}  // namespace engine
