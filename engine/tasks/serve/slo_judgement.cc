#include "engine/tasks/serve/slo_judgement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "engine/figures.h"

namespace engine {
namespace {

// The value that a limit is about. Those that were given up have no latency: they are later than any limit. A percentile of
// all requests is one of those that were answered, further up.
double limited_value(double share, Samples& samples, double given_up) {
  if (share == kMeanShare) return samples.mean();
  const double answered = double(samples.count());
  const double among = given_up > 0 ? share * (answered + given_up) / answered : share;
  return among <= 1 ? samples.percentile(among) : kNever;
}

bool within(const LatencyLimits& limits, Samples& samples, double given_up) {
  bool holds = true;
  limits.each([&](double share, double limit) {
    holds =
        holds && limited_value(share, samples, given_up) <= limit;  // not where nothing was seen
  });
  return holds;
}

bool within(const LatencyLimits& limits, const Latency& latency) {
  const auto holds = [](Seconds limit, Seconds value) {
    return limit.value <= 0 || value <= limit;  // not so where nothing was seen
  };
  return holds(limits.mean, latency.mean) && holds(limits.p50, latency.p50) &&
         holds(limits.p90, latency.p90) && holds(limits.p95, latency.p95) &&
         holds(limits.p99, latency.p99);
}

}  // namespace

Latency latency_of(Samples& samples) {
  Latency latency;
  latency.mean = Seconds{samples.mean()};
  latency.p50 = Seconds{samples.percentile(0.50)};
  latency.p90 = Seconds{samples.percentile(0.90)};
  latency.p95 = Seconds{samples.percentile(0.95)};
  latency.p99 = Seconds{samples.percentile(0.99)};
  return latency;
}

Latency gap_latency(const ServingStats& stats) {
  if (stats.gap_count() <= 0) {
    const Seconds none{kNoValue};
    return {none, none, none, none, none};
  }
  return {Seconds{stats.gap_mean()}, Seconds{stats.gap_percentile(0.50)},
          Seconds{stats.gap_percentile(0.90)}, Seconds{stats.gap_percentile(0.95)},
          Seconds{stats.gap_percentile(0.99)}};
}

bool limited(const LatencyLimits& limits) { return request_limit(limits).value < kNever; }

bool meets_between_tokens(const Slo& slo, ServingStats& stats) {
  const double given_up = stats.measured().given_up;
  // Answers of one token have no time per token and no gaps: nothing of them can be late.
  const bool one_token = stats.measured().finished > 0 && given_up == 0;
  const bool no_tpot = one_token && stats.tpot.count() == 0;
  const bool no_gaps = one_token && stats.gap_count() <= 0;
  return (no_tpot || within(slo.tpot, stats.tpot, given_up)) &&
         (no_gaps || !limited(slo.itl) || within(slo.itl, gap_latency(stats)));
}

bool meets(const Slo& slo, ServingStats& stats) {
  const double given_up = stats.measured().given_up;
  return within(slo.ttft, stats.ttft, given_up) && meets_between_tokens(slo, stats) &&
         within(slo.e2e, stats.e2e, given_up);
}

std::string missed_limit(const Slo& slo, ServingStats& stats) {
  std::string missed;
  const auto look = [&missed](std::string_view name, const LatencyLimits& limits,
                              const auto& seen_at) {
    limits.each([&](double share, double limit) {
      const double seen = seen_at(share);
      if (!missed.empty() || !(seen > limit) || !std::isfinite(seen)) return;
      const std::string which = share == kMeanShare ? "mean" : fmt::format("p{:.0f}", 100 * share);
      missed = fmt::format("{}_{} is {:.3g} s, and {:g} s are allowed", name, which, seen, limit);
    });
  };
  const auto of = [given_up = stats.measured().given_up](Samples& samples) {
    return [&samples, given_up](double share) { return limited_value(share, samples, given_up); };
  };
  look("ttft", slo.ttft, of(stats.ttft));
  look("tpot", slo.tpot, of(stats.tpot));
  look("itl", slo.itl, [&stats](double share) {
    if (stats.gap_count() <= 0) return 0.0;
    return share == kMeanShare ? stats.gap_mean() : stats.gap_percentile(share);
  });
  look("e2e", slo.e2e, of(stats.e2e));
  return missed;
}

double first_token_room(const Slo& slo, ServingStats& stats) {
  const double given_up = stats.measured().given_up;
  double room = kNever;
  // A comparison with what was never seen does not hold: no room.
  const auto bound = [&room](double most) { room = most > 0 ? std::min(room, most) : 0; };
  slo.ttft.each([&](double share, double limit) {
    bound(limit / limited_value(share, stats.ttft, given_up));
  });
  slo.e2e.each([&](double share, double limit) {
    bound(1 + (limit - limited_value(share, stats.e2e, given_up)) / stats.ttft.mean());
  });
  return room;
}

}  // namespace engine
