#include "engine/serving/serving_sim.h"

#include <algorithm>
#include <cmath>

namespace engine {

double ServingSim::next_mark() const {
  return std::min({window_begin_, window_end_, timeline_.next()});
}

void ServingSim::mark(double time) {
  if (time == timeline_.next()) return timeline_.write(replicas_);
  for (Replica& replica : replicas_) replica.split(time);
  (time == window_begin_ ? window_begin_ : window_end_) = kNever;
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

}  // namespace

void ServingSim::run(const ServingProblem& problem) {
  if (problem.context.work != nullptr) problem.context.work->charge_bytes(bytes_at_start(problem));
  table_.reset(problem.context, problem.scale);
  const Load& load = problem.load;
  const double begin = load.warmup.value;
  const double end = load.window.value > 0 ? begin + load.window.value : kNever;
  stats_.reset({.slo = problem.slo,
                .window_begin = begin,
                .window_end = end,
                .request_latency = problem.context.host.request_latency.value,
                .requests = problem.output.requests ? problem.request_rows : nullptr});
  window_begin_ = begin > 0 ? begin : kNever;
  window_end_ = end;
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
  const bool caching = problem.settings.prefix_caching;
  const bool looks_into_caches = caching && problem.settings.router == RouterName::prefix_aware;
  RequestSource source(load, problem.trace, memory_,
                       {.level = problem.level, .seed = problem.seed, .prefixes = caching});
  const RouteFunction route = router_of(problem.settings.router);
  std::int64_t routed = 0;
  double now = 0;
  // An event looks at every replica; an arrival stays in memory until it is answered.
  const double work_of_an_event = 1 + double(replicas_.size()) / 8;
  constexpr double work_of_an_arrival = 32;
  std::int64_t longest_output = 0;
  while (true) {
    problem.context.charge(work_of_an_event);
    const std::size_t next = next_replica();
    const double event = replicas_[next].next_event();
    const double arrival = source.next_arrival();
    const double soonest = std::min(event, arrival);
    if (soonest == kNever) break;
    if (next_mark() <= soonest) {
      problem.context.charge(work_of_an_arrival * double(replicas_.size()));
      mark(next_mark());
      continue;
    }
    if (arrival <= event + kSameMoment) {
      source.take(request_);
      problem.context.charge(work_of_an_arrival);
      if (request_.output > longest_output) {
        // Calendars have a day for every step until the last token.
        problem.context.charge(4 * double(request_.output - longest_output));
        longest_output = request_.output;
      }
      stats_.arrived(request_.arrival);
      now = std::max(now, request_.arrival);
      if (looks_into_caches) {
        for (Replica& replica : replicas_) replica.settle(request_.arrival);
      }
      const std::size_t target = replicas_.size() == 1 ? 0
                                                       : route({.replicas = replicas_,
                                                                .request = request_,
                                                                .nth = routed,
                                                                .seed = problem.seed});
      ++routed;
      if (!replicas_[target].enqueue(request_)) {
        stats_.refused(request_, std::int32_t(target));
        source.answered(request_.client, request_.arrival);
      }
      continue;
    }
    Replica& replica = replicas_[next];
    now = event;
    replica.advance(std::min({arrival, next_mark(), next_event_but(next)}));
    const double seen = now + problem.context.host.request_latency.value;
    for (const std::int64_t client : replica.answered()) source.answered(client, seen);
    replica.answered().clear();
  }
  makespan_ = now;
  idle_seconds_ = 0;
  for (const Replica& replica : replicas_) idle_seconds_ += replica.idle_seconds(makespan_);
}

}  // namespace engine
