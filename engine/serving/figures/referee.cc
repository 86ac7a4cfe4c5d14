#include "engine/serving/figures/referee.h"

#include <algorithm>
#include <span>
#include <vector>

namespace engine {
namespace {

void add_to(LoopSums& loop, const ServedRequest& request, const MeasuredPart& part) {
  const double within = std::min(request.finish, part.until) - std::max(request.arrival, part.from);
  loop.inside += std::max(within, 0.0);
  if (part.holds_answer(request.finish)) loop.answered += 1;
  if (!part.holds_arrival(request.arrival)) return;
  loop.arrived += 1;
  loop.stays += request.finish - request.arrival;
}

}  // namespace

void Referee::start(const Setup& setup) {
  setup_ = setup;
  verdict_ = {};
  stopped_ = false;
}

void Referee::end(ServingStats& stats) { verdict_ = judge(stats); }

bool Referee::decide(ServingStats& stats, RequestSource& source) {
  RunWatch& watch = stats.watch();
  if (watch.state() == RunWatch::State::overrun) {
    // Far too many for the system, or too few to fill it: only the former ends here.
    if (stopped_) return true;
    stopped_ = !watch.can_lengthen() || is_hopeless(judge(stats));
    if (stopped_) {
      source.stop();
    } else {
      watch.lengthen();
    }
    return true;
  }
  verdict_ = judge(stats);
  if (stopped_ || !watch.can_lengthen() || enough(stats)) return false;
  watch.lengthen();
  return true;
}

// Overloaded for certain: a search knows enough. Figures are those of a full system, so how much it finishes is to be known
// as well, which it is not while it fills up.
bool Referee::is_hopeless(const RunVerdict& verdict) const {
  const bool known = setup_.purpose == RunPurpose::verdict || verdict.throughput_error <= kPrecise;
  return verdict.saturation == Saturation::overloaded && known && !verdict.caches_fill();
}

bool Referee::enough(const ServingStats& stats) const {
  if (stats.watch().too_short()) return false;
  // A stated window is as long as it is, and so is a timetable.
  const RunPlan& plan = stats.watch().plan();
  if (plan.window > 0 || plan.lasts > 0) return true;
  const bool missed = verdict_.slo.missed || verdict_.saturation == Saturation::overloaded;
  if (missed && verdict_.caches_fill()) return false;
  if (setup_.purpose == RunPurpose::verdict && missed) return true;
  if (!missed && !verdict_.caches_level()) return false;
  return verdict_.precise() && verdict_.saturation != Saturation::undecided;
}

RunVerdict Referee::judge(ServingStats& stats) {
  const MeasuredPart part = stats.watch().part(stats.summary().last_finish);
  const std::span<const Snapshot> snapshots = stats.watch().snapshots(part);
  const bool limits = setup_.slo->any();
  const RunPlan& plan = stats.watch().plan();
  const bool closed = plan.kind == RunKind::closed;
  // Of a long run of a stated length the later requests are still there one by one, and of all those before them the sums.
  double queued = stats.measured().queued, inside = stats.measured().in_service;
  double stay = 0, stayed = 0;
  WorkSpread work;
  CacheReads reads;
  const bool caches = stats.summary().found > 0;
  LoopSums loop;
  LatencySamples& samples = samples_;
  for (std::vector<double>* values : {&samples.ttft, &samples.tpot, &samples.e2e}) values->clear();
  double answered = 0, given_up = 0;
  for (const ServedRequest& request : stats.served()) {
    if (request.output <= 0) {
      if (!limits || !part.holds_arrival(request.arrival)) continue;
      for (std::vector<double>* values : {&samples.ttft, &samples.tpot, &samples.e2e}) {
        values->push_back(kNever);
      }
      given_up += 1;
      continue;
    }
    stay += request.finish - request.scheduled;
    stayed += 1;
    if (closed) add_to(loop, request, part);
    if (!part.holds_arrival(request.arrival)) continue;
    queued += request.scheduled - request.arrival;
    inside += request.finish - request.scheduled;
    work.add(double(request.prompt - request.cached), double(request.output + request.others),
             request.finish - request.scheduled);
    if (caches) reads.add(double(request.prompt), double(request.cached));
    if (!limits) continue;
    answered += 1;
    samples.ttft.push_back(stats.ttft_of(request));
    if (request.output > 1) samples.tpot.push_back(ServingStats::tpot_of(request));
    samples.e2e.push_back(stats.e2e_of(request));
  }
  const double mean_stay = stayed > 0 ? stay / stayed : 0;
  LoadEvidence evidence{.kind = plan.kind,
                        .settled = part.settled && (plan.warmup <= 0 || plan.warmup >= mean_stay),
                        .snapshots = snapshots,
                        .queue_share = inside > 0 ? queued / inside : 0,
                        .restless = work.with_arrivals(plan.burstiness)};
  const FleetSeen fleet = setup_.fleet ? setup_.fleet(part) : FleetSeen{};
  evidence.requests_of_session = double(plan.unit_size);
  evidence.failures_unknown = !fleet.failures_known;
  evidence.may_go_on = plan.endless && stats.watch().can_lengthen();
  if (!snapshots.empty()) {
    const double since = snapshots.back().time - stats.watch().first_arrival();
    evidence.stays = mean_stay > 0 ? since / mean_stay : 0;
  }
  if (plan.states_part() && mean_stay > 0) evidence.stays_of_part = part.span() / mean_stay;
  evidence.unit_stay = mean_stay * evidence.requests_of_session;
  evidence.filled = stats.watch().first_arrival() + plan.earliest + 2 * evidence.unit_stay;
  if (snapshots.size() > 1 && setup_.capacity > 0) {
    const double arrived = snapshots.back().arrived - snapshots.front().arrived;
    const double seconds = snapshots.back().time - snapshots.front().time;
    evidence.offered_share = arrived / seconds / setup_.capacity;
  }
  RunVerdict verdict{.saturation = saturation_of(evidence),
                     .throughput_error = finished_rate(snapshots).relative(),
                     .settled = evidence.settled,
                     .failures_known = fleet.failures_known,
                     .cache_drift = reads.drift()};
  // Only figures have a rent. Of a system that does not keep up, all of the fleet is on.
  verdict.fleet_seen = setup_.purpose != RunPurpose::figures ||
                       verdict.saturation == Saturation::overloaded || fleet.size_known;
  if (closed) {
    verdict.throughput_error = std::max(verdict.throughput_error, little_error(loop));
  }
  if (!limits) return verdict;
  if (request_limit(setup_.slo->itl).value < kNever) stats.look_at_gaps(part);
  const double shown = answered + given_up;
  const double summed = stats.measured().requests + stats.measured().given_up;
  samples.seen = shown > 0 ? shown / (shown + summed) : 1;
  // Gaps are those of requests that were answered.
  verdict.slo = judge_slo(*setup_.slo, samples, [&](double share) {
    if (share == kMeanShare) return stats.gap_mean();
    return stats.gap_percentile(std::min(1.0, share * (answered + given_up) / answered));
  });
  // What a system that does not keep up shows so far says nothing about what it comes to.
  verdict.slo.decided = verdict.slo.decided && (verdict.keeps_up() || verdict.slo.missed);
  verdict.slo.known = verdict.slo.known && (verdict.keeps_up() || verdict.slo.missed);
  return verdict;
}

}  // namespace engine
