#include "engine/serving/mechanisms/fleet.h"

#include "engine/serving/mechanisms/adapters.h"
#include "engine/serving/mechanisms/hand_over.h"
#include "engine/serving/mechanisms/images.h"
#include "engine/serving/mechanisms/lockstep.h"
#include "engine/serving/mechanisms/outages.h"
#include "engine/serving/mechanisms/scaling.h"
#include "engine/serving/mechanisms/several_answers.h"
#include "engine/serving/mechanisms/tiers_below.h"
#include "engine/serving/mechanisms/timeline.h"

namespace engine {

// ---- requests on their way --------------------------------------------------------------------------

std::size_t Fleet::route_among(Pool& pool, const Request& asked, double time) {
  return pool.first + pool.route({.replicas = {replicas.data() + pool.first, pool.count},
                                  .takers = pool.scaler.takers(),
                                  .weights = pool.weights,
                                  .holders = pool.holders,
                                  .request = asked,
                                  .class_replicas = pool.class_replicas,
                                  .now = time,
                                  .nth = pool.routed - 1,
                                  .seed = pool.routing_seed});
}

void Fleet::ask_for(const Sequence& sequence) {
  request.number = sequence.number;
  request.arrival = sequence.arrival;
  request.session = sequence.session;
  request.client = sequence.client;
  request.closes = sequence.closes;
  request.priority = sequence.priority;
  request.tenant = sequence.tenant;
  request.prompt = sequence.prompt;
  request.output = sequence.asked;
  request.prefix.assign(sequence.prefix.begin(), sequence.prefix.end());
  request.service_class = sequence.service_class;
  request.adapter = sequence.adapter;
}

void Fleet::turn_away(RequestEnd why, std::size_t replica) {
  const double time = std::max(now, request.arrival);
  stats.turned_away(request, why, std::int32_t(replica), time);
  source->answered(request.client, time);
}

std::int32_t Fleet::take_in(std::size_t index, const Sequence& sequence, std::int64_t output) {
  const Awaited adapter = with.adapters == nullptr ? Awaited::nothing : Awaited::adapter;
  const Awaited awaits = with.images != nullptr ? Awaited::images : adapter;
  const std::int32_t slot = replicas[index].take_over(sequence, output, now, awaits);
  if (awaits == Awaited::images) with.images->await(index, slot, now);
  if (awaits == Awaited::adapter) with.adapters->await(index, slot, now);
  return slot;
}

// Every sequence gets its adapter first and blocks afterwards: if some held blocks while they waited for adapters of others that wait
// for blocks, none would go on.
std::int32_t Fleet::expect(std::size_t index, const Sequence& sequence, std::int32_t from,
                           std::int32_t from_slot) {
  const Awaited awaits = with.adapters == nullptr ? Awaited::nothing : Awaited::adapter;
  const std::int32_t slot = replicas[index].expect(sequence, from, from_slot, now, awaits);
  if (awaits == Awaited::adapter) with.adapters->await(index, slot, now);
  note(index);
  return slot;
}

void Fleet::expect_no_more(std::size_t index, std::int32_t slot) {
  if (with.adapters != nullptr) with.adapters->withdraw(index, slot);
  replicas[index].expect_no_more(slot, now);
  note(index);
}

// A request with images asks for its adapter once they are encoded, as in engines that get encoded images with the request.
void Fleet::take_awaited(std::size_t index, std::int32_t slot) {
  const Sequence& sequence = replicas[index].sequence(slot);
  if (sequence.awaits == Awaited::images && with.adapters != nullptr) {
    with.adapters->await(index, slot, now);
  } else {
    if (sequence.awaits == Awaited::adapter) {
      sums_of(index).adapter_wait += now - sequence.joined;
    }
    go_on(index, slot, now);
  }
  start_loads(index);
  note(index);
}

void Fleet::go_on(std::size_t index, std::int32_t slot, double time) {
  Replica& replica = replicas[index];
  Sequence& sequence = replica.sequence(slot);
  if (sequence.whereabouts != Whereabouts::expected) return replica.join_queue(slot, time);
  replica.ask_for_room(slot, time);
}

// It is done: its client is told, if there is one, unless other answers to its prompt are still being generated.
[[gnu::always_inline]] inline bool Fleet::answer(Sequence& sequence, std::size_t index) {
  using Left = AnswerGroups::Left;
  const Left left = sequence.answers >= 0 ? with.answers->groups().done(sequence) : Left::none;
  if (left == Left::some) return false;
  // Its first token may have come from another replica.
  const double told = std::max(replicas[index].told(now), sequence.first_token);
  if (left == Left::none) {
    stats.finished(sequence, {.made = now, .told = told}, std::int32_t(index));
  } else {
    stats.failed(sequence, now, std::int32_t(index));
  }
  if (sequence.client < 0) return false;
  source->answered(sequence.client, told + stats.request_latency());
  return true;
}

bool Fleet::see_off(std::size_t index) {
  Replica& replica = replicas[index];
  const bool last = is_last(index);
  bool told = false;
  for (const std::int32_t slot : replica.departed()) {
    Sequence& sequence = replica.sequence(slot);
    if (with.adapters != nullptr) with.adapters->release(index, sequence.adapter);
    if (!last && sequence.is_handed_over()) {
      with.hand_over->hand_over(index, slot);
      told = true;  // the replica that goes on with it has its turn first
      continue;
    }
    told = answer(sequence, index) || told;
    if (last) {
      replica.forget(slot);
    } else {
      replica.release(slot, now);
    }
  }
  replica.departed().clear();
  if (with.adapters != nullptr) with.adapters->find_room(index);
  return told;
}

void Fleet::load_from_below(std::size_t replica) { with.tiers->start_loads(replica); }

// ---- replicas ---------------------------------------------------------------------------------------

bool Fleet::note_in_group(std::size_t replica) { return with.lockstep->note(replica); }

void Fleet::weigh(std::size_t replica) {
  Pool& pool = home_of(replica);
  if (with.held != nullptr && !takes_requests(pool, replica)) return;
  if (pool.weight == ReplicaWeight::none) return;
  const Replica& changed = replicas[replica];
  const bool tokens = pool.weight == ReplicaWeight::tokens;
  pool.weights.set(replica - pool.first,
                   tokens ? changed.outstanding_tokens() : changed.outstanding());
}

// In a fleet that changes: whether the replica takes requests. First it is switched off if it is no longer wanted and is empty.
[[gnu::noinline]] bool Fleet::takes_requests(Pool& pool, std::size_t replica) {
  switch_off_if_empty(pool, replica);
  return pool.scaler.takes(replica - pool.first);
}

void Fleet::takers_changed(Pool& pool) {
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

// A replica goes with the others of its unit.
void Fleet::switch_off_if_empty(Pool& pool, std::size_t replica) {
  const std::size_t place = replica - pool.first;
  if (!pool.scaler.unwanted(place)) return;
  const std::size_t unit = pool.scaler.unit(), first = place / unit * unit;
  for (std::size_t i = first; i < first + unit; ++i) {
    if (!replicas[pool.first + i].empty()) return;
  }
  pool.scaler.switch_off(place, now);
  for (std::size_t i = pool.first + first; i < pool.first + first + unit; ++i) {
    replicas[i].go_off(now);
    lose_adapters(i);
  }
}

void Fleet::lose_adapters(std::size_t replica) {
  if (with.adapters != nullptr) with.adapters->lose_all(replica);
}

void Fleet::wake(Pool& pool) {
  if (with.scaling == nullptr || pool.scaler.open() > 0 || !pool.scaler.wake(now)) return;
  takers_changed(pool);
  find_interruptions();
}

void Fleet::find_interruptions() {
  const double written = with.timeline != nullptr ? with.timeline->next() : kNever;
  marked = std::min(stats.watch().next_edge(), written);
  const double looked = with.scaling != nullptr ? with.scaling->next() : kNever;
  const double failing = with.outages != nullptr ? with.outages->next() : kNever;
  interruption = std::min(marked, std::min(looked, failing));
}

}  // namespace engine
