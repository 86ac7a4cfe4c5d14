#include "engine/serving/serving_sim.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace engine {

// ---- setting up -----------------------------------------------------------------------------------

void ServingSim::start(const ServingProblem& problem) {
  problem_ = &problem;
  check_journey(problem.journey);
  const StepContext& answers = problem.pools[stages().back().pool].context;
  work_ = problem.pools[0].context.work;
  if (answers.work != nullptr) answers.work->charge_bytes(bytes_at_start(problem));
  const Slo& judged = problem.judged != nullptr ? *problem.judged : problem.slo;
  stats_.reset(
      {.slo = problem.slo,
       .load = &problem.load,
       .tenants = tenants_of(problem),
       .plan = problem.plan,
       .request_latency = answers.host.request_latency.value,
       .pools = problem.pools.size(),
       .requests = problem.output.requests ? problem.request_rows : nullptr,
       .gaps = problem.purpose == RunPurpose::figures || request_limit(judged.itl).value < kNever,
       .whole_times = problem.purpose != RunPurpose::few_figures});
  timeline_.reset(problem.output, problem.timeline_rows);
  referee_.start({.slo = &judged,
                  .purpose = problem.purpose,
                  .capacity = problem.capacity,
                  .fleet = [this](const MeasuredPart& part) { return fleet_seen(part); }});
  std::size_t replicas = 0, lanes = 0;
  for (const PoolSetup& pool : problem.pools) {
    replicas += std::size_t(pool.replicas);
    lanes += std::size_t(pool.replicas * pool.context.shard.parallel.pp);
  }
  pools_.resize(problem.pools.size());
  many_ = replicas >= kManyReplicas && lanes == replicas;
  make_replicas(replicas, lanes);
  pool_of_.resize(replicas);
  stage_of_pool_.assign(pools_.size(), 0);
  for (std::size_t i = 0; i < stages().size(); ++i) {
    stage_of_pool_[stages()[i].pool] = std::uint8_t(i);
  }
  replicas = lanes = 0;
  sheds_ = std::ranges::any_of(problem.pools,
                               [](const PoolSetup& pool) { return pool.settings.admission.any(); });
  caches_ = std::ranges::any_of(problem.pools,
                                [](const PoolSetup& pool) { return pool.settings.prefix_caching; });
  weighs_ = scales_ = fails_ = steps_together_ = loads_ = in_sight_ = false;
  held_.clear();
  held_back_.clear();
  for (std::size_t i = 0; i < pools_.size(); ++i) {
    pools_[i].first = replicas;
    pools_[i].first_lane = lanes;
    start_pool(i);
    replicas += pools_[i].count;
    lanes += pools_[i].count * pools_[i].lanes;
    weighs_ = weighs_ || pools_[i].weight != ReplicaWeight::none;
  }
  compares_ = weighs_ || scales_ || fails_;
  keeps_turns_ = problem.before_event == nullptr;
  pipelines_ = keeps_turns_ && lanes > replicas;
  const bool take_turns =
      std::ranges::any_of(problem.pools, [](const PoolSetup& pool) { return pool.turns.any(); });
  goes_on_ = keeps_turns_ && lanes == replicas && !(many_ || loads_ || in_sight_ || take_turns);
  // A group takes its turns as one, at the place of its first replica.
  std::size_t together = 0;
  for (const Pool& pool : pools_) {
    together = std::gcd(together, pool.groups.empty() ? 1 : pool.groups[0].members());
  }
  events_.reset(replicas, together);
  others_moved_ = false;
  next_ = after_next_ = expected_ = 0;
  events_since_expected_ = 0;
  transfers_.reset(replicas);
  now_ = 0;
  answers_.reset();
  start_adapters();
  leaves_quietly_ = stages().size() == 1 && adapters_.empty() && !scales_ && !fails_;
  encoders_.reset(problem.encoders);
  fits_everywhere_ = std::numeric_limits<std::int64_t>::max();
  for (const Stage& stage : stages()) {
    const Replica& any = replicas_[pools_[stage.pool].first];
    fits_everywhere_ = std::min(fits_everywhere_, any.most_tokens());
  }
  find_interruptions();
}

// ---- events ---------------------------------------------------------------------------------------

void ServingSim::run(const ServingProblem& problem) {
  start(problem);
  RequestSource source(
      problem.load, problem.trace, memory_,
      {.level = problem.level,
       .seed = problem.seed,
       .prefixes = caches_ && (problem.trace != nullptr || problem.load.repeats_prompts()),
       .endless = problem.plan.endless});
  bool goes_on = true;
  while (goes_on && take_event(source)) {
    double edge = 0;
    if (stats_.take_edge(edge)) {
      find_interruptions();
      for (std::size_t i = 0; i < replicas_.size(); ++i) {
        replicas_[i].split(edge);
        note(i);
      }
    }
    goes_on = referee_.goes_on(stats_, source);
  }
  makespan_ = std::max(now_, problem.plan.curve_end);
  if (steps_together_) settle_groups();
  if (goes_on) referee_.end(stats_);
  stuck_ = goes_on ? stats_.inside() : 0;
  stats_.measure(makespan_);
  problem_ = nullptr;
}

// Inlined: a call of its own would be a tenth of what an event costs.
[[gnu::always_inline]] inline bool ServingSim::take_event(RequestSource& source) {
  if (problem_->before_event != nullptr) (*problem_->before_event)(*this);
  charge(kWorkOfAnEvent);
  const EventQueue::Turn turn = events_.next();
  const double event = turn.time;
  if (many_) {
    look_ahead(turn);
    source.fetch_next_client();
  }
  const double arrival = source.next_arrival();
  const double carried = transfers_.next();
  const double soonest = std::min(std::min(event, arrival), carried);
  // At one moment interruptions come before arrivals, these before what was carried, and all of them before turns; in which
  // order rounding puts them does not matter.
  if (interruption_ <= soonest + kSameMoment) {
    const bool over = interruption_ > problem_->plan.curve_end;
    if (soonest == kNever && held_.empty() && held_back_.empty() && over) return false;
    interrupt(source);
  } else if (arrival <= event + kSameMoment && arrival <= carried + kSameMoment) {
    now_ = std::max(now_, arrival);
    arrive(source);
  } else if (carried <= event + kSameMoment) {
    now_ = std::max(now_, carried);
    take_delivery();
  } else {
    now_ = event;
    const double elsewhere = std::min(std::min(arrival, carried), marked_);
    advance(turn.replica, std::min(elsewhere, turn.others), source);
    return true;
  }
  if (many_) look_further_ahead();
  return true;
}

// At one moment failures come before scaling, and that before marks.
void ServingSim::interrupt(RequestSource& source) {
  const double scaling = scales_ ? next_scaling() : kNever;
  const double failing = fails_ ? next_failure() : kNever;
  const double latest = interruption_ + kSameMoment;
  if (fails_ && failing <= latest) {
    charge(kWorkOfAnEvent * double(replicas_.size()));
    fail_or_repair(failing, source);
  } else if (scales_ && scaling <= latest) {
    charge(kWorkOfAnEvent * double(replicas_.size()));
    scale(scaling, source);
  } else {
    charge(kWorkOfAnArrival * double(replicas_.size()));
    mark(marked_);
  }
  find_interruptions();
}

// Anew after an interruption, and where a measured part has come to begin or end.
void ServingSim::find_interruptions() {
  marked_ = next_mark();
  interruption_ = std::min(
      marked_, std::min(scales_ ? next_scaling() : kNever, fails_ ? next_failure() : kNever));
}

// Moments at which stretches are split: where measuring may begin or end, and timeline rows.
void ServingSim::mark(double time) {
  if (time == timeline_.next()) return timeline_.write(replicas_, held_.size());
  stats_.watch().pass_edge();
  stats_.add_edge(time);
}

std::size_t ServingSim::route_among(Pool& pool, const Request& request, double now) {
  return pool.first + pool.route({.replicas = {replicas_.data() + pool.first, pool.count},
                                  .takers = pool.scaler.takers(),
                                  .weights = pool.weights,
                                  .holders = pool.holders,
                                  .request = request,
                                  .class_replicas = pool.class_replicas,
                                  .now = now,
                                  .nth = pool.routed - 1,
                                  .seed = pool.routing_seed});
}

void ServingSim::arrive(RequestSource& source) {
  source.take(request_);
  charge(kWorkOfAnArrival);
  stats_.arrived(request_);
  if (scales_) {
    for (const Stage& stage : stages()) wake(pools_[stage.pool]);
  }
  std::size_t target = 0;
  const bool local = stays_local(target);
  // An answer of one token is written by the replica that reads the prompt.
  if (problem_->journey.pushes && !local && request_.output * request_.samples > 1) {
    return ever_fits(false) ? reserve(source) : turn_away(RequestEnd::refused, 0, source);
  }
  Pool& first = pools_[stages()[0].pool];
  const bool nobody = !local && first.scaler.open() == 0;  // all have failed, or are off
  if (!local) target = nobody ? first.first : route(0, request_, request_.arrival);
  if (many_ && target != expected_) fetch_lines_for_arrival(target);
  if (!ever_fits(local)) return turn_away(RequestEnd::refused, target, source);
  if (nobody) return hold(first, source);
  if (sheds_ && sheds(target, local)) {
    return turn_away(RequestEnd::shed, target, source);
  }
  const std::int64_t output = local || stages()[0].writes ? request_.output : 1;
  if (encoders_.any()) {
    await_images(target, replicas_[target].enqueue(request_, output, Awaited::images),
                 request_.arrival);
  } else if (adapters_.empty()) {
    replicas_[target].enqueue(request_, output, Awaited::nothing);
  } else {
    await_adapter(target, replicas_[target].enqueue(request_, output, Awaited::adapter),
                  request_.arrival);
  }
  start_loads(target);
  note(target);
  if (many_) expect_request(first);
}

// Whether the pools on its way could serve the request that arrives if they had nothing else to do.
bool ServingSim::fits_on_its_way(bool local) const {
  return std::ranges::all_of(stages(), [&](const Stage& stage) {
    const Replica& any = replicas_[pools_[stage.pool].first];
    return (local && !stage.writes) ||
           any.fits(request_.prompt, stage.writes ? request_.output : 1);
  });
}

void ServingSim::turn_away(RequestEnd why, std::size_t replica, RequestSource& source) {
  const double time = std::max(now_, request_.arrival);
  stats_.turned_away(request_, why, std::int32_t(replica), time);
  source.answered(request_.client, time);
}

bool ServingSim::is_short(std::size_t& replica) {
  Pool& writers = pools_[stages().back().pool];
  if (writers.scaler.open() == 0) return false;
  replica = route(stages().size() - 1, request_, request_.arrival);
  const std::int64_t cached = replicas_[replica].cached_tokens(request_, request_.arrival);
  const bool stays = request_.prompt - cached <= problem_->journey.short_prompt;
  if (!stays) --writers.routed;  // to ask is not to send
  return stays;
}

// ---- a replica's turn -----------------------------------------------------------------------------

[[gnu::always_inline]] inline void ServingSim::advance(std::size_t index, double next_event,
                                                       RequestSource& source) {
  LockstepGroup* const group = steps_together_ ? group_of(index) : nullptr;
  if (group != nullptr) return advance_group(*group, next_event, source);
  for (bool again = true; again;) {
    if (pipelines_ && !decode_on(index, next_event)) break;
    if (in_sight_ && only_takes_blocks(index, next_event)) break;
    if (goes_on_ && replicas_[index].only_goes_on() && only_goes_on(index, next_event)) break;
    again = take_turn(index, next_event, source);
    if (again) begin_turn(index);
  }
  note(index);
}

[[gnu::always_inline]] inline bool ServingSim::take_turn(std::size_t index, double& next_event,
                                                         RequestSource& source) {
  Replica& replica = replicas_[index];
  if (many_) fetch_behind_sequences(index, source);
  const bool ran = replica.end_work();
  const bool forks = !replica.forking().empty(), departs = !replica.departed().empty();
  if (forks) fork(index, source);
  const bool told = departs && depart(index, source);
  if (told) next_event = next_after_telling(index, next_event, source);
  if (many_) look_further_ahead();
  if (replica.halted()) {
    rest(index, ran, source);
    return false;
  }
  const bool expects = replica.expects();
  if (!ran || replica.plans_now(next_event)) {
    if (expects) fetch(index, source);
    if (!replica.forking().empty()) fork(index, source);
    start_loads(index);
    // A request that waited and is loading now no longer keeps KV from landing.
    if (expects && loads_) fetch(index, source);
    replica.plan();
  }
  replica.end_turn(ran);
  if (loads_) next_event = others_moved_ ? now_ : std::min(next_event, transfers_.next());
  if (!keeps_turns_ || expects || !is_next(replica, next_event)) return false;
  return !(forks || departs) || (leaves_quietly_ && stats_.nothing_to_decide());
}

// A replica that goes on with a request, or a client that was told, may act at this very moment. Where no request comes at once the turn
// goes on, and counts as two events.
[[gnu::noinline]] double ServingSim::next_after_telling(std::size_t index, double next_event,
                                                        const RequestSource& source) {
  const bool clients = stage_of(index) + 1 == stages().size();
  const bool quiet = keeps_turns_ && !others_moved_ && stats_.nothing_to_decide();
  if (!clients || !quiet) return now_;
  const double next = std::min(next_event, source.next_arrival());
  if (replicas_[index].plans_now(next)) charge(kWorkOfAnEvent);
  return next;
}

// It is done: its client is told, if there is one, unless other answers to its prompt are still being generated.
[[gnu::always_inline]] inline bool ServingSim::answer(Sequence& sequence, std::size_t index,
                                                      RequestSource& source) {
  using Left = AnswerGroups::Left;
  const Left left = sequence.answers >= 0 ? answers_.done(sequence) : Left::none;
  if (left == Left::some) return false;
  // Its first token may have come from another replica.
  const double told = std::max(replicas_[index].told(now_), sequence.first_token);
  if (left == Left::none) {
    stats_.finished(sequence, {.made = now_, .told = told}, std::int32_t(index));
  } else {
    stats_.failed(sequence, now_, std::int32_t(index));
  }
  if (sequence.client < 0) return false;
  source.answered(sequence.client, told + stats_.request_latency());
  return true;
}

bool ServingSim::depart(std::size_t index, RequestSource& source) {
  Replica& replica = replicas_[index];
  const bool last = stage_of(index) + 1 == stages().size();
  bool told = false;
  for (const std::int32_t slot : replica.departed()) {
    Sequence& sequence = replica.sequence(slot);
    if (!adapters_.empty()) adapters_[index].release(sequence.adapter);
    if (!last && sequence.is_handed_over()) {
      hand_over(index, slot, source);
      told = true;  // the replica that goes on with it has its turn first
      continue;
    }
    told = answer(sequence, index, source) || told;
    if (last) {
      replica.forget(slot);
    } else {
      replica.release(slot, now_);
    }
  }
  replica.departed().clear();
  if (!adapters_.empty()) find_room_for_adapters(index);
  return told;
}

}  // namespace engine
