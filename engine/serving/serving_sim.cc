#include "engine/serving/serving_sim.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/serving/serving_pools.h"

namespace engine {

// ---- setting up -----------------------------------------------------------------------------------

void ServingSim::start(const ServingProblem& problem) {
  Fleet& fleet = fleet_;
  fleet.problem = &problem;
  fleet.with = {};
  check_journey(problem.journey);
  const StepContext& answers = problem.pools[fleet.stages().back().pool].context;
  fleet.work = problem.pools[0].context.work;
  if (answers.work != nullptr) answers.work->charge_bytes(bytes_at_start(problem));
  const Slo& judged = problem.judged != nullptr ? *problem.judged : problem.slo;
  fleet.stats.reset(
      {.slo = problem.slo,
       .load = &problem.load,
       .tenants = tenants_of(problem),
       .plan = problem.plan,
       .request_latency = answers.host.request_latency.value,
       .pools = problem.pools.size(),
       .requests = problem.output.requests ? problem.request_rows : nullptr,
       .gaps = problem.purpose == RunPurpose::figures || request_limit(judged.itl).value < kNever,
       .whole_times = problem.purpose != RunPurpose::few_figures});
  referee_.start({.slo = &judged,
                  .purpose = problem.purpose,
                  .capacity = problem.capacity,
                  .fleet = [this](const MeasuredPart& part) { return fleet_seen(part); }});
  std::size_t replicas = 0, lanes = 0;
  for (const PoolSetup& pool : problem.pools) {
    replicas += std::size_t(pool.replicas);
    lanes += std::size_t(pool.replicas * pool.context.shard.parallel.pp);
  }
  fleet.with.many = states_.many.start(fleet, replicas, lanes) ? &states_.many : nullptr;
  lay_out_pools(fleet);
  states_.start_below_replicas(fleet);
  start_pools(fleet, {states_.lockstep, states_.tiers, scratch_plan_});
  fleet.now = 0;
  states_.start_above_replicas(fleet);
  fleet.compares =
      fleet.with.held != nullptr || std::ranges::any_of(fleet.pools, [](const Pool& pool) {
        return pool.weight != ReplicaWeight::none;
      });
  in_a_row_ = in_a_row();
  // A group takes its turns as one, at the place of its first replica.
  std::size_t together = 0;
  for (std::size_t i = 0; i < fleet.pools.size(); ++i) {
    together = std::gcd(together, states_.lockstep.members(i));
  }
  fleet.events.reset(replicas, together);
  fleet.transfers.reset(replicas);
  fits_everywhere_ = std::numeric_limits<std::int64_t>::max();
  for (const Stage& stage : fleet.stages()) {
    const Replica& any = fleet.replicas[fleet.pools[stage.pool].first];
    fits_everywhere_ = std::min(fits_everywhere_, any.most_tokens());
  }
  fleet.find_interruptions();
}

ServingSim::InARow ServingSim::in_a_row() const {
  if (fleet_.problem->before_event != nullptr) return InARow::no;
  if (fleet_.lanes.size() > fleet_.replicas.size()) return InARow::pipelines;
  // Where a part ends, requests may load, others may have a look at the cache, and another model may have the devices.
  const bool take_turns = std::ranges::any_of(
      fleet_.problem->pools, [](const PoolSetup& pool) { return pool.turns.any(); });
  const bool concerns_others = fleet_.with.many != nullptr || fleet_.with.tiers != nullptr;
  return take_turns || concerns_others ? InARow::turns : InARow::parts;
}

// ---- events ---------------------------------------------------------------------------------------

void ServingSim::run(const ServingProblem& problem) {
  start(problem);
  const bool caches = std::ranges::any_of(
      problem.pools, [](const PoolSetup& pool) { return pool.settings.prefix_caching; });
  RequestSource source(
      problem.load, problem.trace, memory_,
      {.level = problem.level,
       .seed = problem.seed,
       .prefixes = caches && (problem.trace != nullptr || problem.load.repeats_prompts()),
       .endless = problem.plan.endless});
  fleet_.source = &source;
  ServingStats& stats = fleet_.stats;
  bool goes_on = true;
  while (goes_on && take_event(source)) {
    double edge = 0;
    if (stats.take_edge(edge)) pass_edge(edge);
    goes_on = referee_.goes_on(stats, source);
  }
  makespan_ = std::max(fleet_.now, problem.plan.curve_end);
  if (fleet_.with.lockstep != nullptr) fleet_.with.lockstep->settle();
  if (goes_on) referee_.end(stats);
  stuck_ = goes_on ? stats.inside() : 0;
  stats.measure(makespan_);
  fleet_.problem = nullptr;
  fleet_.source = nullptr;
}

// Inlined: a call of its own would be a tenth of what an event costs.
[[gnu::always_inline]] inline bool ServingSim::take_event(RequestSource& source) {
  Fleet& fleet = fleet_;
  if (fleet.problem->before_event != nullptr) (*fleet.problem->before_event)(*this);
  fleet.charge(kWorkOfAnEvent);
  const EventQueue::Turn turn = fleet.events.next();
  const double event = turn.time;
  ManyReplicas* const many = fleet.with.many;
  if (many != nullptr) many->look_ahead(turn);
  const double arrival = source.next_arrival();
  const double carried = fleet.transfers.next();
  const double soonest = std::min(std::min(event, arrival), carried);
  // At one moment interruptions come before arrivals, these before what was carried, and all of them before turns; in which
  // order rounding puts them does not matter.
  if (fleet.interruption <= soonest + kSameMoment) {
    const HeldRequests* const held = fleet.with.held;
    const bool over = fleet.interruption > fleet.problem->plan.curve_end;
    if (soonest == kNever && (held == nullptr || held->empty()) && over) return false;
    interrupt();
  } else if (arrival <= event + kSameMoment && arrival <= carried + kSameMoment) {
    fleet.now = std::max(fleet.now, arrival);
    arrive(source);
  } else if (carried <= event + kSameMoment) {
    fleet.now = std::max(fleet.now, carried);
    take_delivery();
  } else {
    fleet.now = event;
    const double elsewhere = std::min(std::min(arrival, carried), fleet.marked);
    advance(turn.replica, std::min(elsewhere, turn.others), source);
    return true;
  }
  if (many != nullptr) many->look_further_ahead();
  return true;
}

// At one moment failures come before scaling, and that before marks.
void ServingSim::interrupt() {
  Fleet& fleet = fleet_;
  const double latest = fleet.interruption + kSameMoment;
  const double replicas = double(fleet.replicas.size());
  Outages* const outages = fleet.with.outages;
  Scaling* const scaling = fleet.with.scaling;
  const double failing = outages != nullptr ? outages->next() : kNever;
  const double looked = scaling != nullptr ? scaling->next() : kNever;
  if (outages != nullptr && failing <= latest) {
    fleet.charge(kWorkOfAnEvent * replicas);
    outages->act(failing);
  } else if (scaling != nullptr && looked <= latest) {
    fleet.charge(kWorkOfAnEvent * replicas);
    scaling->act(looked);
  } else {
    fleet.charge(kWorkOfAnArrival * replicas);
    mark(fleet.marked);
  }
  fleet.find_interruptions();
}

// Moments at which stretches are split: where measuring may begin or end, and timeline rows.
void ServingSim::mark(double time) {
  const Mechanisms& with = fleet_.with;
  if (with.timeline != nullptr && time == with.timeline->next()) {
    const std::size_t held = with.held != nullptr ? with.held->requests() : 0;
    return with.timeline->write(fleet_.replicas, held);
  }
  fleet_.stats.watch().pass_edge();
  fleet_.stats.add_edge(time);
}

// A measured part has come to begin or end.
void ServingSim::pass_edge(double time) {
  fleet_.find_interruptions();
  for (std::size_t i = 0; i < fleet_.replicas.size(); ++i) {
    fleet_.replicas[i].split(time);
    fleet_.note(i);
  }
}

FleetSeen ServingSim::fleet_seen(const MeasuredPart& part) const {
  const Scaling* const scaling = fleet_.with.scaling;
  return {.size_known = scaling == nullptr || scaling->size_is_known(part),
          .failures_known = failures_are_known()};
}

void ServingSim::arrive(RequestSource& source) {
  Fleet& fleet = fleet_;
  const Mechanisms& with = fleet.with;
  const Request& request = fleet.request;
  source.take(fleet.request);
  fleet.charge(kWorkOfAnArrival);
  fleet.stats.arrived(request);
  if (with.scaling != nullptr) {
    for (const Stage& stage : fleet.stages()) fleet.wake(fleet.pools[stage.pool]);
  }
  std::size_t target = 0;
  const bool local = with.hand_over != nullptr && with.hand_over->stays_local(target);
  const Served served = local ? Served::locally : Served::by_all_pools;
  // An answer of one token is written by the replica that reads the prompt.
  if (with.pushes != nullptr && !local && request.output * request.samples > 1) {
    return ever_fits(served) ? with.pushes->set_aside() : fleet.turn_away(RequestEnd::refused, 0);
  }
  Pool& first = fleet.readers();
  const bool nobody = !local && first.scaler.open() == 0;  // all have failed, or are off
  if (!local) target = nobody ? first.first : fleet.route(0, request, request.arrival);
  if (with.many != nullptr) with.many->arrives_at(target);
  if (!ever_fits(served)) return fleet.turn_away(RequestEnd::refused, target);
  if (nobody) return with.held->hold(first);
  if (with.shedding != nullptr && with.shedding->sheds(target, served)) {
    return fleet.turn_away(RequestEnd::shed, target);
  }
  const std::int64_t output = local || fleet.stages()[0].writes ? request.output : 1;
  Replica& there = fleet.replicas[target];
  if (with.images != nullptr) {
    with.images->await(target, there.enqueue(request, output, Awaited::images), request.arrival);
  } else if (with.adapters == nullptr) {
    there.enqueue(request, output, Awaited::nothing);
  } else {
    with.adapters->await(target, there.enqueue(request, output, Awaited::adapter), request.arrival);
  }
  fleet.start_loads(target);
  fleet.note(target);
  if (with.many != nullptr) with.many->expect_request(first);
}

bool ServingSim::fits_on_its_way(Served served) const {
  return std::ranges::all_of(fleet_.stages(), [&](const Stage& stage) {
    const Replica& any = fleet_.replicas[fleet_.pools[stage.pool].first];
    return (served == Served::locally && !stage.writes) ||
           any.fits(fleet_.request.prompt, stage.writes ? fleet_.request.output : 1);
  });
}

// Something that was under way is there: KV, an adapter, images; or an encoder is free.
void ServingSim::take_delivery() {
  Fleet& fleet = fleet_;
  const Transfers::Arrived done = fleet.transfers.take();
  const std::size_t to = done.shipment.to;
  const std::int32_t slot = done.shipment.slot;
  if (to == kStillCrossing) return;
  if (to == kToEncoders) return fleet.with.images->start_encoders();
  if (done.shipment.from != kFromBelow) {
    fleet.sums_of(to).carry_seconds += fleet.now - done.started;
    return fleet.with.hand_over->deliver(to, slot);
  }
  const Sequence& sequence = fleet.replicas[to].sequence(slot);
  if (sequence.awaits != Awaited::nothing) return fleet.take_awaited(to, slot);
  if (sequence.whereabouts == Whereabouts::restored) {
    if (fleet.with.tiers != nullptr) fleet.with.tiers->act(to, -1);
    fleet.replicas[to].restore(slot, fleet.now);
  } else {
    fleet.with.tiers->finish_load(to, slot);
  }
  fleet.note(to);
}

// ---- a replica's turn -----------------------------------------------------------------------------

[[gnu::always_inline]] inline void ServingSim::advance(std::size_t index, double next_event,
                                                       RequestSource& source) {
  Lockstep* const lockstep = fleet_.with.lockstep;
  LockstepGroup* const group = lockstep != nullptr ? lockstep->group_of(index) : nullptr;
  if (group != nullptr) return lockstep->advance(*group, next_event);
  const TiersBelow* const tiers = fleet_.with.tiers;
  const bool in_sight = tiers != nullptr && tiers->in_sight();
  for (bool again = true; again;) {
    if (in_a_row_ == InARow::pipelines && !decode_on(index, next_event)) break;
    if (in_sight && only_takes_blocks(index, next_event)) break;
    if (in_a_row_ == InARow::parts && fleet_.replicas[index].only_goes_on() &&
        only_goes_on(index, next_event)) {
      break;
    }
    again = take_turn(index, next_event, source);
    if (again) begin_turn(index);
  }
  fleet_.note(index);
}

[[gnu::always_inline]] inline bool ServingSim::take_turn(std::size_t index, double& next_event,
                                                         RequestSource& source) {
  Fleet& fleet = fleet_;
  const Mechanisms& with = fleet.with;
  Replica& replica = fleet.replicas[index];
  if (with.many != nullptr) with.many->fetch_behind_sequences(index);
  const bool ran = replica.end_work();
  const bool forks = !replica.forking().empty(), departs = !replica.departed().empty();
  if (forks) with.answers->begin_others(index);
  const bool told = departs && fleet.see_off(index);
  if (told) next_event = next_after_telling(index, next_event, source);
  if (with.many != nullptr) with.many->look_further_ahead();
  if (replica.halted()) {
    replica.end_turn(ran);
    fleet.note(index);
    with.outages->ends_work(index);
    return false;
  }
  const bool expects = replica.expects();
  if (!ran || replica.plans_now(next_event)) {
    if (expects) with.hand_over->fetch(index);
    if (!replica.forking().empty()) with.answers->begin_others(index);
    fleet.start_loads(index);
    // A request that waited and is loading now no longer keeps KV from landing.
    if (expects && with.tiers != nullptr) with.hand_over->fetch(index);
    replica.plan();
  }
  replica.end_turn(ran);
  if (with.tiers != nullptr) {
    next_event = others_moved() ? fleet.now : std::min(next_event, fleet.transfers.next());
  }
  if (in_a_row_ == InARow::no || expects || !is_next(replica, next_event)) return false;
  return !(forks || departs) || (!fleet.departures_are_heard() && fleet.stats.nothing_to_decide());
}

double ServingSim::idle_seconds(std::size_t pool) const {
  const Pool& of = fleet_.pools[pool];
  double seconds = 0;
  for (std::size_t i = of.first; i < of.first + of.count; ++i) {
    seconds += fleet_.replicas[i].idle_seconds(makespan_);
  }
  return seconds;
}

}  // namespace engine
