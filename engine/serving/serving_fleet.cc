// Replicas that come and go while a load is served: with the load, and when they fail.
#include <algorithm>

#include "engine/serving/serving_sim.h"

namespace engine {

// ---- scaling ----------------------------------------------------------------------------------------

double ServingSim::next_scaling() const {
  double next = kNever;
  for (const Pool& pool : pools_) next = std::min(next, pool.scaler.next());
  return next;
}

void ServingSim::scale(double time, RequestSource& source) {
  now_ = std::max(now_, time);
  bool awake = false;
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    Pool& pool = pools_[p];
    if (pool.scaler.next() > time) continue;
    const bool nobody = pool.scaler.open() == 0;
    std::int64_t inside = held_for(p);
    for (std::size_t i = 0; i < pool.count; ++i) inside += replicas_[pool.first + i].outstanding();
    const bool looks = pool.scaler.looks();
    pool.scaler.act(double(inside), pool.routed > pool.routed_at_look);
    if (looks) pool.routed_at_look = pool.routed;
    takers_changed(pool);
    awake = awake || (nobody && pool.scaler.open() > 0);
  }
  if (awake) send_held(source);
}

// Whether it is known how many replicas each pool that follows the load has, and what failures do.
FleetSeen ServingSim::fleet_seen(const MeasuredPart& part) const {
  FleetSeen seen{.failures_known = failures_are_known()};
  const double settling = stats_.watch().plan().fleet;
  if (!scales_ || settling <= 0 || part.empty()) return seen;
  const double rounds = part.span() / settling;
  const std::size_t batches = batches_of_rounds(rounds);
  std::vector<double> sizes(batches);
  for (const Pool& pool : pools_) {
    if (!pool.scaler.follows_load()) continue;
    for (std::size_t i = 0; i < batches; ++i) {
      const double from = part.from + part.span() * double(i) / double(batches);
      const double until = part.from + part.span() * double(i + 1) / double(batches);
      sizes[i] = pool.scaler.on_seconds(from, until) / (until - from);
    }
    seen.size_known = seen.size_known && size_is_known(sizes, rounds);
  }
  return seen;
}

// Requests outside all replicas that wait for one of this pool.
std::int64_t ServingSim::held_for(std::size_t pool) const {
  std::int64_t held = 0;
  for (const Sequence& sequence : held_) held += stages()[entry_stage(sequence)].pool == pool;
  for (const HeldBack& one : held_back_) held += stages()[awaited_stage(one)].pool == pool;
  return held;
}

// No replica takes requests. Where the fleet follows the load, a request that comes starts one.
void ServingSim::wake(Pool& pool) {
  if (pool.scaler.open() > 0 || !pool.scaler.wake(now_)) return;
  takers_changed(pool);
  find_interruptions();
}

// Sends the requests that waited until a replica takes them.
void ServingSim::send_held(RequestSource& source) {
  std::vector<Sequence> held;
  held.swap(held_);
  for (const Sequence& sequence : held) {
    send(sequence, sequence.attempts > 1 ? Sent::after_failure : Sent::after_waiting, source);
  }
  std::vector<HeldBack> back;
  back.swap(held_back_);
  for (const HeldBack& one : back) {
    if (awaited_stage(one) > 0) {
      hand_over(one.replica, one.slot, source);
    } else {
      dispatch(one.replica, one.slot, source);  // it has set blocks aside
    }
  }
}

// Tells routers which replicas take requests from now on. Replicas that are no longer wanted go off when they are empty.
void ServingSim::takers_changed(Pool& pool) {
  pool.class_replicas = replicas_of_classes(pool.class_work, std::int64_t(pool.scaler.open()));
  for (std::size_t i = 0; i < pool.count; ++i) {
    if (!pool.scaler.takes(i)) {
      pool.weights.set(i, kTakesNone);
      switch_off_if_empty(pool, pool.first + i);
    } else if (pool.weight != ReplicaWeight::none && pool.weights.at(i) == kTakesNone) {
      note(pool.first + i);
    }
  }
}

void ServingSim::weigh(std::size_t replica) {
  Pool& pool = pools_[pool_of_[replica]];
  if ((scales_ || fails_) && !takes_requests(pool, replica)) return;
  if (pool.weight == ReplicaWeight::none) return;
  const Replica& changed = replicas_[replica];
  const bool tokens = pool.weight == ReplicaWeight::tokens;
  pool.weights.set(replica - pool.first,
                   tokens ? changed.outstanding_tokens() : changed.outstanding());
}

[[gnu::noinline]] bool ServingSim::takes_requests(Pool& pool, std::size_t replica) {
  switch_off_if_empty(pool, replica);
  return pool.scaler.takes(replica - pool.first);
}

void ServingSim::switch_off_if_empty(Pool& pool, std::size_t replica) {
  const std::size_t place = replica - pool.first;
  if (!pool.scaler.unwanted(place)) return;
  const std::size_t unit = pool.scaler.unit(), first = place / unit * unit;
  for (std::size_t i = first; i < first + unit; ++i) {
    if (!replicas_[pool.first + i].empty()) return;
  }
  pool.scaler.switch_off(place, now_);
  for (std::size_t i = pool.first + first; i < pool.first + first + unit; ++i) {
    replicas_[i].go_off(now_);
    if (!adapters_.empty()) adapters_[i].lose_all();
  }
}

// ---- failures ---------------------------------------------------------------------------------------

bool ServingSim::failures_are_known() const {
  constexpr double enough = 30;
  double count = 0;
  for (const Pool& pool : pools_) count += pool.failures.count();
  return !fails_ || count >= enough;
}

double ServingSim::next_failure() const {
  double next = kNever;
  for (const Pool& pool : pools_) next = std::min(next, pool.failures.next());
  return next;
}

void ServingSim::fail_or_repair(double time, RequestSource& source) {
  now_ = std::max(now_, time);
  for (Pool& pool : pools_) {
    if (pool.failures.next() > time) continue;
    const std::size_t unit = pool.failures.next_unit();
    if (pool.failures.under_repair(unit)) return repair(pool, unit, source);
    return fail(pool, unit, source);
  }
}

// A replica that fails ends the step it is in; what that made is told, and everything else is lost.
void ServingSim::fail(Pool& pool, std::size_t unit, RequestSource& source) {
  const std::size_t size = pool.scaler.unit(), place = unit * size;
  if (!pool.scaler.is_on(place)) return pool.failures.pass_by(unit, now_);
  pool.failures.fail(unit);
  pool.scaler.fail(place, now_);
  takers_changed(pool);
  for (std::size_t i = pool.first + place; i < pool.first + place + size; ++i) {
    replicas_[i].halt(now_);
    note(i);
  }
  for (std::size_t i = pool.first + place; i < pool.first + place + size; ++i) {
    if (replicas_[i].at_rest()) abandon(i, source);
  }
}

void ServingSim::repair(Pool& pool, std::size_t unit, RequestSource& source) {
  const std::size_t size = pool.scaler.unit(), place = unit * size;
  pool.failures.repaired(unit, now_);
  for (std::size_t i = place; i < place + size; ++i) replicas_[pool.first + i].restart(now_);
  pool.scaler.repair(place, now_);
  takers_changed(pool);
  send_held(source);
}

// It has failed: nothing is planned, and what there is of it goes elsewhere once its lanes are at rest.
void ServingSim::rest(std::size_t index, bool ran, RequestSource& source) {
  replicas_[index].end_turn(ran);
  note(index);
  if (!replicas_[index].at_rest()) return;
  abandon(index, source);
  find_interruptions();  // its repair
}

// A replica has come to rest after its failure: each of its sequences goes on elsewhere, or is given up.
void ServingSim::abandon(std::size_t index, RequestSource& source) {
  Pool& pool = pools_[pool_of_[index]];
  const std::size_t size = pool.scaler.unit(), unit = (index - pool.first) / size;
  std::vector<Replica::Stranded> stranded;
  // KV that is under way to it, or from it, stays where it is.
  replicas_[index].strand(now_, stranded);
  if (!adapters_.empty()) adapters_[index].lose_all();
  note(index);
  for (const Replica::Stranded& one : stranded) move_on(index, one, source);
  const auto first = replicas_.begin() + std::ptrdiff_t(pool.first + unit * size);
  const bool all = std::all_of(first, first + std::ptrdiff_t(size), [](const Replica& replica) {
    return replica.halted() && replica.at_rest();
  });
  if (!all || pool.failures.under_repair(unit)) return;
  pool.failures.went_down(unit, now_);
  // Some came to rest sooner: while the steps of the others went on, they were not down.
  for (auto replica = first; replica != first + std::ptrdiff_t(size); ++replica) {
    replica->waited_at_rest(now_);
  }
}

void ServingSim::move_on(std::size_t index, const Replica::Stranded& stranded,
                         RequestSource& source) {
  Sequence sequence = stranded.sequence;
  switch (sequence.whereabouts) {
    case Whereabouts::fetched:
    case Whereabouts::expected:
      transfers_.cancel(now_, index, stranded.slot);  // its KV, or its adapter
      if (sequence.from_replica < 0) return move_reservation(index, stranded, source);
      // Its KV is still where it was read.
      replicas_[std::size_t(sequence.from_replica)].leads_to(sequence.from_slot, -1, -1);
      return hand_over(std::size_t(sequence.from_replica), sequence.from_slot, source);
    case Whereabouts::awaiting:
      encoders_.withdraw(index, stranded.slot);
      [[fallthrough]];
    case Whereabouts::loading:
    case Whereabouts::restored:
      transfers_.cancel(now_, index, stranded.slot);
      break;
    case Whereabouts::leaving:
      call_back(index, stranded.slot, sequence);
      break;
    case Whereabouts::landed:
      // One that is made anew has been taken back already.
      if (sequence.waited_for_room && !stages().back().carry.remakes_first_token) {
        take_back_first_token(sequence);
      }
      break;
    case Whereabouts::running:
    case Whereabouts::waiting:
    case Whereabouts::kept:
    case Whereabouts::nowhere:
      break;
  }
  if (problem_->journey.pushes && stage_of(index) == 0 && sequence.to_replica >= 0 &&
      sequence.whereabouts != Whereabouts::leaving) {
    expect_no_more(std::size_t(sequence.to_replica), sequence.to_slot);
  }
  try_again(index, sequence, source);
}

void ServingSim::try_again(std::size_t index, Sequence& sequence, RequestSource& source) {
  // What is kept of answers is up to the pool that writes them.
  const FailureSettings& settings = pools_[stages().back().pool].failures.settings();
  stats_.lost(sequence.computed);
  if (sequence.attempts >= settings.attempts) {
    const bool others_go_on =
        sequence.answers >= 0 && answers_.give_up(sequence) == AnswerGroups::Left::some;
    if (others_go_on) return;
    stats_.failed(sequence, now_, std::int32_t(index));
    return source.answered(sequence.client, now_);
  }
  ++sequence.attempts;
  stats_.retried();
  if (settings.answers == AfterFailure::restart) sequence.generated = 0;
  send(sequence, Sent::after_failure, source);
}

// Tells the replica that expects the KV of a sequence that was read here that it will not come.
void ServingSim::call_back(std::size_t index, std::int32_t slot, Sequence& sequence) {
  if (sequence.to_replica < 0) {
    hold_back_no_more(index, slot);
  } else {
    const auto there = std::size_t(sequence.to_replica);
    const bool fetched =
        replicas_[there].sequence(sequence.to_slot).whereabouts == Whereabouts::fetched;
    if (fetched) transfers_.cancel(now_, there, sequence.to_slot);
    expect_no_more(there, sequence.to_slot);
  }
  take_back_first_token(sequence);
}

void ServingSim::hold_back_no_more(std::size_t index, std::int32_t slot) {
  std::erase_if(held_back_,
                [&](const HeldBack& one) { return one.replica == index && one.slot == slot; });
}

// A replica that is reading the prompt reads it to its end: it is not taken out of the steps that it is part of.
void ServingSim::move_reservation(std::size_t index, const Replica::Stranded& stranded,
                                  RequestSource& source) {
  const Sequence& sequence = stranded.sequence;
  if (sequence.whereabouts == Whereabouts::fetched && sequence.to_replica >= 0) {
    return replicas_[std::size_t(sequence.to_replica)].leads_to(sequence.to_slot, -1, -1);
  }
  hold_back_no_more(index, stranded.slot);
  send(sequence, Sent::after_failure, source);
}

// Its KV does not wait here for room elsewhere, where blocks may have been set aside for those that wait for room here.
void ServingSim::read_in_vain(std::size_t index, std::int32_t slot, RequestSource& source) {
  Sequence sequence = replicas_[index].sequence(slot);
  sequence.kv.forget();
  replicas_[index].release(slot, now_);
  note(index);
  take_back_first_token(sequence);
  try_again(index, sequence, source);
}

// The token that reading gave was not told where the next pool tells it, once there is a seat.
void ServingSim::take_back_first_token(Sequence& sequence) const {
  if (stages().back().carry.tells_first_token) --sequence.generated;
}

// Sends a sequence to the pool that reads prompts, from its start or after what it has written, or first to the replica that sets blocks
// aside. The pool that writes reads itself what no reader has room for: an answer that was begun, or a prompt that it mostly had.
void ServingSim::send(const Sequence& sequence, Sent sent, RequestSource& source) {
  const std::size_t stage = entry_stage(sequence);
  Pool& pool = pools_[stages()[stage].pool];
  wake(pool);
  if (pool.scaler.open() == 0) {
    held_.push_back(sequence);
    return;
  }
  ask_for(sequence);
  const std::size_t target = route(stage, request_, now_);
  const bool sets_aside = stage > 0 && readers_fit(sequence);
  Replica& there = replicas_[target];
  if (sheds_ && sent == Sent::after_waiting &&
      (sets_aside ? there.sheds_before_room(request_, now_, reading(), at_writer(target, 0))
                  : sheds(target, stage > 0))) {
    return turn_away(RequestEnd::shed, target, source);
  }
  if (sets_aside) {
    passed_on_ = sequence;
    passed_on_.target = sequence.to_read();
    passed_on_.to_replica = passed_on_.to_slot = -1;
    passed_on_.received = passed_on_.read = -1;
    passed_on_.goes_on = false;  // what it had was lost: it comes as for the first time
    passed_on_.joined = now_;
    expect(target, passed_on_, -1, -1);
    return;
  }
  const std::int64_t output = stages()[stage].writes ? sequence.asked : sequence.token_by_reading();
  // What became of its images was lost with the replica that had them: they are encoded again.
  take_in(target, sequence, output);
  start_loads(target);
  note(target);
}

void ServingSim::hold(Pool& pool, RequestSource& source) {
  // How long a repair takes is not known, so requests that wait for one are judged when it is over.
  const double opens = pool.scaler.opens();
  const double wait = opens < kNever ? std::max(0.0, opens - request_.arrival) : 0;
  if (sheds_ && replicas_[pool.first].sheds_after(wait, request_, reading())) {
    ++pool.routed;  // it counts as having come, so that the replica that was started for it stays on
    return turn_away(RequestEnd::shed, pool.first, source);
  }
  Sequence sequence;
  begin(sequence, request_);
  held_.push_back(std::move(sequence));
  stats_.held();
}

double ServingSim::idle_seconds(std::size_t pool) const {
  double seconds = 0;
  for (std::size_t i = pools_[pool].first; i < pools_[pool].first + pools_[pool].count; ++i) {
    seconds += replicas_[i].idle_seconds(makespan_);
  }
  return seconds;
}

}  // namespace engine
