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

void ServingSim::run(const ServingProblem& problem) {
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
  while (true) {
    const std::size_t next = next_replica();
    const double event = replicas_[next].next_event();
    const double arrival = source.next_arrival();
    const double soonest = std::min(event, arrival);
    if (soonest == kNever) break;
    if (next_mark() <= soonest) {
      mark(next_mark());
      continue;
    }
    if (arrival <= event + kSameMoment) {
      source.take(request_);
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
