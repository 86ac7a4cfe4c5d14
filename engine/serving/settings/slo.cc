#include "engine/serving/settings/slo.h"

#include <initializer_list>
#include <limits>

namespace engine {
namespace {

bool any_of(const LatencyLimits& limits) {
  return limits.mean.value > 0 || limits.p50.value > 0 || limits.p90.value > 0 ||
         limits.p95.value > 0 || limits.p99.value > 0;
}

}  // namespace

bool Slo::any() const { return any_of(ttft) || any_of(tpot) || any_of(itl) || any_of(e2e); }

Seconds request_limit(const LatencyLimits& limits) {
  for (const Seconds limit : {limits.p99, limits.p95, limits.p90, limits.p50, limits.mean}) {
    if (limit.value > 0) return limit;
  }
  return Seconds{std::numeric_limits<double>::infinity()};
}

}  // namespace engine
