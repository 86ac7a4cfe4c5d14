#include "engine/tasks/serve/slo_judgement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "engine/figures.h"

namespace engine {
namespace {

// The value that a limit is about, of so many that were answered. Those that were given up have no latency: they are later than
// any limit. So is a mean with one of them, and a percentile of all requests is one of those that were answered, further up.
template <class ValueAt>
double with_given_up(double share, double answered, double given_up, const ValueAt& value_at) {
  if (given_up <= 0) return value_at(share);
  if (share == kMeanShare) return kNever;
  const double among = share * (answered + given_up) / answered;
  return among <= 1 ? value_at(among) : kNever;
}

double limited_value(double share, Samples& samples, double given_up) {
  return with_given_up(share, double(samples.count()), given_up, [&samples](double among) {
    return among == kMeanShare ? samples.mean() : samples.percentile(among);
  });
}

// Of the gaps between tokens, of which those that were given up have none: they count as requests.
double limited_gap(double share, const ServingStats& stats) {
  const MeasuredSums& measured = stats.measured();
  return with_given_up(share, measured.requests, measured.given_up, [&stats](double among) {
    if (stats.gap_count() <= 0) return kNoValue;
    return among == kMeanShare ? stats.gap_mean() : stats.gap_percentile(among);
  });
}

template <class ValueAt>
bool within(const LatencyLimits& limits, const ValueAt& value_at) {
  bool holds = true;
  limits.each([&](double share, double limit) {
    holds = holds && value_at(share) <= limit;  // not where nothing was seen
  });
  return holds;
}

bool within(const LatencyLimits& limits, Samples& samples, double given_up) {
  return within(limits, [&](double share) { return limited_value(share, samples, given_up); });
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
         (no_gaps || within(slo.itl, [&](double share) { return limited_gap(share, stats); }));
}

bool meets(const Slo& slo, ServingStats& stats) {
  const double given_up = stats.measured().given_up;
  return within(slo.ttft, stats.ttft, given_up) && meets_between_tokens(slo, stats) &&
         within(slo.e2e, stats.e2e, given_up);
}

namespace {

// In as few digits as show that it is beyond the limit, three at least.
std::string beyond(double limit, double seen) {
  constexpr int fewest = 3, most = 17;
  int digits = fewest;
  while (digits < most && std::stod(fmt::format("{:.{}g}", seen, digits)) <= limit) ++digits;
  return fmt::format("{:.{}g}", seen, digits);
}

}  // namespace

std::string missed_limit(const Slo& slo, ServingStats& stats) {
  std::string missed;
  const double given_up = stats.measured().given_up, answered = stats.measured().requests;
  const auto look = [&](std::string_view name, const LatencyLimits& limits, const auto& seen_at) {
    limits.each([&](double share, double limit) {
      const double seen = seen_at(share);
      if (!missed.empty() || !(seen > limit)) return;
      const std::string which = share == kMeanShare ? "mean" : fmt::format("p{:.0f}", 100 * share);
      missed = std::isfinite(seen)
                   ? fmt::format("{}_{} is {} s, and {:g} s are allowed", name, which,
                                 beyond(limit, seen), limit)
                   : fmt::format(
                         "{:.0f} of {:.0f} requests are refused, shed or failed, and count as "
                         "later than {}_{}",
                         given_up, given_up + answered, name, which);
    });
  };
  const auto of = [given_up](Samples& samples) {
    return [&samples, given_up](double share) { return limited_value(share, samples, given_up); };
  };
  look("ttft", slo.ttft, of(stats.ttft));
  look("tpot", slo.tpot, of(stats.tpot));
  look("itl", slo.itl, [&stats](double share) { return limited_gap(share, stats); });
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
