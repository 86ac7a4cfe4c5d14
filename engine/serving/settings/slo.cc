#include "engine/serving/settings/slo.h"

#include <algorithm>
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

Slo tighter_of(const Slo& one, const Slo& other) {
  const auto limit = [](Seconds a, Seconds b) {
    return a.value > 0 && b.value > 0 ? std::min(a, b) : std::max(a, b);  // 0: there is none
  };
  const auto limits = [&limit](const LatencyLimits& a, const LatencyLimits& b) {
    return LatencyLimits{limit(a.mean, b.mean), limit(a.p50, b.p50), limit(a.p90, b.p90),
                         limit(a.p95, b.p95), limit(a.p99, b.p99)};
  };
  return {limits(one.ttft, other.ttft), limits(one.tpot, other.tpot), limits(one.itl, other.itl),
          limits(one.e2e, other.e2e)};
}

Seconds request_limit(const LatencyLimits& limits) {
  for (const Seconds limit : {limits.p99, limits.p95, limits.p90, limits.p50, limits.mean}) {
    if (limit.value > 0) return limit;
  }
  return Seconds{std::numeric_limits<double>::infinity()};
}

}  // namespace engine
