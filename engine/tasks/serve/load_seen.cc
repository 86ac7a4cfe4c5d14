#include "engine/tasks/serve/load_seen.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/figures.h"
#include "engine/workload/arrivals.h"
#include "engine/workload/lengths.h"

namespace engine {
namespace {

double stated_rate(const PlayedLoad& played) {
  return played.level.rate * double(played.load.calls_of_session());
}

void report_curve(const PlayedLoad& played, const RunWatch& watch, Metrics& metrics) {
  std::string reason;
  const auto curve = parse_rate_curve(played.load.curve, reason);
  if (!curve) return;
  const double whole = curve->expected() * double(played.load.calls_of_session());
  if (whole > 0) metrics.load_seen = double(watch.arrivals()) / whole;
  if (!curve->ends()) {
    metrics.curve_tail = Seconds{std::max(0.0, watch.last_arrival() - curve->last_step())};
  }
}

// Share of the tokens that the maxima of lengths cut off. kNoValue: there are none, or they are bounds of the distribution.
double cut_share(const PlayedLoad& played) {
  constexpr std::int64_t looked_at = 1000;  // requests
  const Lengths& lengths = played.load.lengths;
  const bool drawn = played.load.arrivals != ArrivalKind::trace;
  const bool bounded = lengths.prompt_max + lengths.output_max + lengths.total_max > 0;
  if (!drawn || !bounded || lengths.distribution == LengthKind::zipf) return kNoValue;
  Lengths whole = lengths;
  whole.prompt_max = whole.output_max = whole.total_max = 0;
  const LengthSampler cut_sampler(lengths, played.seed, played.trace);
  const LengthSampler whole_sampler(whole, played.seed, played.trace);
  double kept = 0, all = 0;
  for (std::int64_t n = 0; n < looked_at; ++n) {
    const LengthPair cut = cut_sampler(n), uncut = whole_sampler(n);
    kept += double(cut.prompt + cut.output);
    all += double(uncut.prompt + uncut.output);
  }
  return std::max(0.0, 1 - kept / all);
}

}  // namespace

void report_load_seen(const PlayedLoad& played, const ServingSim& sim, Metrics& metrics) {
  const RunWatch& watch = sim.stats().watch();
  switch (played.load.arrivals) {
    case ArrivalKind::closed:
      metrics.load_seen = std::min(1.0, double(watch.arrivals()) / double(played.level.clients));
      break;
    case ArrivalKind::curve:
      report_curve(played, watch, metrics);
      break;
    case ArrivalKind::trace:
      metrics.load_seen = double(watch.arrivals()) / double(played.trace->size());
      break;
    case ArrivalKind::poisson:
    case ArrivalKind::gamma:
    case ArrivalKind::deterministic:
      metrics.load_seen = metrics.offered.value / stated_rate(played);
      break;
  }
  metrics.cut_share = cut_share(played);
  const ServingStats::Summary summary = sim.stats().summary();
  const double left = summary.finished + summary.refused + summary.shed + summary.failed;
  if (left <= 0) return;
  metrics.refused_share = summary.refused / left;
  metrics.given_up_share = (left - summary.finished) / left;
}

bool carries(const PlayedLoad& played, const ServingSim& sim) {
  const MeasuredPart& part = sim.stats().part();
  const MeasuredSums& sums = sim.stats().measured();
  if (part.empty() || sums.arrived <= 0) return false;
  const double chance = 2 * std::sqrt(sim.stats().watch().plan().burstiness / sums.arrived);
  const double wanted = stated_rate(played) * part.span() * (1 - kGrowing - chance);
  return sums.finished + sums.given_up >= wanted;
}

}  // namespace engine
