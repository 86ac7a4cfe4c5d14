#include "engine/serving/serving_sim.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace engine {

// Moments at which stretches are split: where measuring may begin or end, and timeline rows.
double ServingSim::next_mark() const {
  return std::min(stats_.watch().next_edge(), timeline_.next());
}

void ServingSim::mark(double time) {
  if (time == timeline_.next()) return timeline_.write(replicas_);
  stats_.watch().pass_edge();
  stats_.add_edge(time);
}

// The replica whose turn it is. Of those at one moment, work ends before anybody plans: an answer may
// bring a request to another replica, at once.
std::size_t ServingSim::next_replica() const {
  std::size_t next = 0;
  for (std::size_t i = 1; i < replicas_.size(); ++i) {
    const double apart = replicas_[i].next_event() - replicas_[next].next_event();
    const bool sooner = std::abs(apart) <= kSameMoment
                            ? replicas_[i].working() && !replicas_[next].working()
                            : apart < 0;
    if (sooner) next = i;
  }
  return next;
}

double ServingSim::next_event_but(std::size_t replica) const {
  double soonest = kNever;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    if (i != replica) soonest = std::min(soonest, replicas_[i].next_event());
  }
  return soonest;
}

namespace {

// What the simulation holds from the start on, in bytes: lanes with their calendars, a place for every number
// of tokens in a step, and the clients and tenants of the load.
double bytes_at_start(const ServingProblem& problem) {
  constexpr double lane = 32 << 10, client = 128, tenant = 8, place = 4;
  const double lanes = double(problem.replicas) * double(problem.context.shard.parallel.pp);
  const double tokens = double(std::min(problem.settings.step_budget(), problem.longest));
  const double clients =
      problem.load.arrivals == ArrivalKind::closed ? double(problem.level.clients) : 0;
  return lanes * (lane + 8 * double(problem.settings.block_size)) + client * clients +
         tenant * double(problem.load.tenants) + place * tokens;
}

// An event looks at every replica; an arrival stays in memory until it is answered.
double work_of_an_event(std::size_t replicas) { return 1 + double(replicas) / 8; }
constexpr double kWorkOfAnArrival = 32;

}  // namespace

void ServingSim::start(const ServingProblem& problem) {
  if (problem.context.work != nullptr) problem.context.work->charge_bytes(bytes_at_start(problem));
  table_.reset(problem.context, problem.scale);
  stats_.reset({.slo = problem.slo,
                .plan = problem.plan,
                .request_latency = problem.context.host.request_latency.value,
                .requests = problem.output.requests ? problem.request_rows : nullptr});
  timeline_.reset(problem.output, problem.timeline_rows);
  const ModelShard& shard = problem.context.shard;
  Replica::Setup setup{.settings = &problem.settings,
                       .table = &table_,
                       .stats = &stats_,
                       .lanes = shard.parallel.pp,
                       .kv_blocks = problem.kv_blocks,
                       .longest = problem.longest,
                       .window = shard.model->window,
                       .audit = problem.audit};
  if (problem.settings.ordering == Ordering::slo) {
    const double limit = request_limit(problem.slo.ttft).value;
    setup.ttft_limit = limit < kNever ? limit : 0;
    setup.seconds_per_prompt_token = table_.prompt_token_seconds();
  }
  replicas_.resize(std::size_t(problem.replicas));
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    setup.number = std::int32_t(i);
    replicas_[i].reset(setup);
  }
  route_ = router_of(problem.settings.router);
  routed_ = 0;
  longest_output_ = 0;
  verdict_ = {};
  stopped_ = false;
}

void ServingSim::arrive(const ServingProblem& problem, RequestSource& source) {
  source.take(request_);
  problem.context.charge(kWorkOfAnArrival);
  if (request_.output > longest_output_) {
    // Calendars have a day for every step until the last token.
    problem.context.charge(4 * double(request_.output - longest_output_));
    longest_output_ = request_.output;
  }
  stats_.arrived(request_);
  if (problem.settings.prefix_caching && problem.settings.router == RouterName::prefix_aware) {
    for (Replica& replica : replicas_) replica.settle(request_.arrival);
  }
  const std::size_t target =
      replicas_.size() == 1
          ? 0
          : route_(
                {.replicas = replicas_, .request = request_, .nth = routed_, .seed = problem.seed});
  ++routed_;
  if (!replicas_[target].enqueue(request_)) {
    stats_.refused(request_, std::int32_t(target));
    source.answered(request_.client, request_.arrival);
  }
}

void ServingSim::run(const ServingProblem& problem) {
  start(problem);
  RequestSource source(problem.load, problem.trace, memory_,
                       {.level = problem.level,
                        .seed = problem.seed,
                        .prefixes = problem.settings.prefix_caching,
                        .endless = problem.plan.endless});
  double now = 0;
  bool judged = false;
  while (!judged) {
    problem.context.charge(work_of_an_event(replicas_.size()));
    const std::size_t next = next_replica();
    const double event = replicas_[next].next_event();
    const double arrival = source.next_arrival();
    const double soonest = std::min(event, arrival);
    if (soonest == kNever) break;
    if (next_mark() <= soonest) {
      problem.context.charge(kWorkOfAnArrival * double(replicas_.size()));
      mark(next_mark());
    } else if (arrival <= event + kSameMoment) {
      now = std::max(now, arrival);
      arrive(problem, source);
    } else {
      Replica& replica = replicas_[next];
      now = event;
      replica.advance(std::min({arrival, next_mark(), next_event_but(next)}));
      const double seen = now + problem.context.host.request_latency.value;
      for (const std::int64_t client : replica.answered()) source.answered(client, seen);
      replica.answered().clear();
    }
    double edge = 0;
    if (stats_.take_edge(edge)) {
      for (Replica& replica : replicas_) replica.split(edge);
    }
    judged = !goes_on(problem, source);
  }
  makespan_ = now;
  idle_seconds_ = 0;
  for (const Replica& replica : replicas_) idle_seconds_ += replica.idle_seconds(makespan_);
  if (!judged) verdict_ = judge(problem);
  stats_.measure(makespan_);
}

bool ServingSim::goes_on(const ServingProblem& problem, RequestSource& source) {
  RunWatch& watch = stats_.watch();
  const RunWatch::State state = watch.state();
  if (state == RunWatch::State::running) return true;
  if (state == RunWatch::State::overrun) {
    // Far too many for the system, or too few to fill it: only the former ends here.
    if (stopped_) return true;
    stopped_ = !watch.can_lengthen() || judge(problem).saturation == Saturation::overloaded;
    if (stopped_) {
      source.stop();
    } else {
      watch.lengthen();
    }
    return true;
  }
  verdict_ = judge(problem);
  if (stopped_ || !watch.can_lengthen() || enough(problem)) return false;
  watch.lengthen();
  return true;
}

bool ServingSim::enough(const ServingProblem& problem) const {
  if (stats_.watch().too_short()) return false;
  // A stated window is as long as it is.
  if (problem.plan.window > 0) return true;
  const bool missed = verdict_.slo.missed || verdict_.saturation == Saturation::overloaded;
  if (problem.purpose == RunPurpose::verdict && missed) return true;
  return verdict_.precise() && verdict_.saturation != Saturation::undecided;
}

RunVerdict ServingSim::judge(const ServingProblem& problem) {
  const MeasuredPart part = stats_.watch().part(stats_.summary().last_finish);
  const std::span<const Snapshot> snapshots = stats_.watch().snapshots(part);
  double queued = 0, inside = 0;
  LatencySamples& samples = samples_;
  for (std::vector<double>* values : {&samples.ttft, &samples.tpot, &samples.e2e}) values->clear();
  for (const ServedRequest& request : stats_.served()) {
    if (request.output == 0 || !part.holds_arrival(request.arrival)) continue;
    queued += request.scheduled - request.arrival;
    inside += request.finish - request.scheduled;
    if (!problem.slo.any()) continue;
    samples.ttft.push_back(stats_.ttft_of(request));
    if (request.output > 1) samples.tpot.push_back(ServingStats::tpot_of(request));
    samples.e2e.push_back(stats_.e2e_of(request));
  }
  LoadEvidence evidence{.kind = problem.plan.kind,
                        .settled = part.settled,
                        .snapshots = snapshots,
                        .queue_share = inside > 0 ? queued / inside : 0};
  if (snapshots.size() > 1 && problem.capacity > 0) {
    const double arrived = snapshots.back().arrived - snapshots.front().arrived;
    const double seconds = snapshots.back().time - snapshots.front().time;
    evidence.offered_share = arrived / seconds / problem.capacity;
  }
  RunVerdict verdict{.saturation = saturation_of(evidence),
                     .throughput_error = finished_rate(snapshots).relative()};
  if (!problem.slo.any()) return verdict;
  if (request_limit(problem.slo.itl).value < kNever) stats_.look_at_gaps(part);
  verdict.slo = judge_slo(problem.slo, samples, [this](double share) {
    return share == kMeanShare ? stats_.gap_mean() : stats_.gap_percentile(share);
  });
  // What a system that does not keep up shows so far says nothing about what it comes to.
  const bool keeps_up =
      verdict.saturation == Saturation::stable || verdict.saturation == Saturation::backlogged;
  verdict.slo.decided = verdict.slo.decided && (keeps_up || verdict.slo.missed);
  return verdict;
}

}  // namespace engine
