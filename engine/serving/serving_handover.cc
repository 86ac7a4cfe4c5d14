// Parts of the simulation that carry KV caches: from one pool to the next, and from tiers below a replica.
#include <algorithm>

#include "engine/serving/serving_sim.h"

namespace engine {

// The request that a sequence on its way already is.
void ServingSim::ask_for(const Sequence& sequence) {
  request_.number = sequence.number;
  request_.arrival = sequence.arrival;
  request_.session = sequence.session;
  request_.client = sequence.client;
  request_.closes = sequence.closes;
  request_.priority = sequence.priority;
  request_.tenant = sequence.tenant;
  request_.prompt = sequence.prompt;
  request_.output = sequence.asked;
  request_.prefix.assign(sequence.prefix.begin(), sequence.prefix.end());
  request_.service_class = sequence.service_class;
  request_.adapter = sequence.adapter;
}

// The prompt has been read: a replica of the next pool is to go on, as soon as it has room.
void ServingSim::hand_over(std::size_t index, std::int32_t slot, RequestSource& source) {
  const Sequence& sequence = replicas_[index].sequence(slot);
  if (problem_->journey.pushes) {
    return sequence.to_replica >= 0 ? push(index, slot) : read_in_vain(index, slot, source);
  }
  ask_for(sequence);
  const std::size_t stage = stage_of(index) + 1;
  Pool& next = pools_[stages()[stage].pool];
  wake(next);
  if (next.scaler.open() == 0) {
    replicas_[index].leads_to(slot, -1, -1);
    held_back_.push_back({index, slot});
    return;
  }
  const std::size_t target = route(stage, request_, now_);
  const std::int32_t there = expect(target, sequence, std::int32_t(index), slot);
  replicas_[index].leads_to(slot, std::int32_t(target), there);
}

// The request that arrives waits for blocks where its answer will be written.
void ServingSim::reserve(RequestSource& source) {
  Pool& writers = pools_[stages().back().pool];
  if (writers.scaler.open() == 0) return hold(writers, source);
  const std::size_t target = route(stages().size() - 1, request_, request_.arrival);
  if (sheds_ && replicas_[target].sheds_before_room(request_, request_.arrival, reading(),
                                                    at_writer(target, 0))) {
    return turn_away(RequestEnd::shed, target, source);
  }
  begin(passed_on_, request_);
  passed_on_.joined = request_.arrival;
  expect(target, passed_on_, -1, -1);
}

// Blocks have been set aside in `slot` of a replica: sends the request to a replica that reads its prompt.
void ServingSim::dispatch(std::size_t index, std::int32_t slot, RequestSource& source) {
  Pool& readers = pools_[stages()[0].pool];
  wake(readers);
  if (readers.scaler.open() == 0) {
    replicas_[index].leads_to(slot, -1, -1);
    held_back_.push_back({index, slot});
    return;
  }
  const Sequence& reserved = replicas_[index].sequence(slot);
  PoolSums& sums = stats_.pool(pool_of_[index]);
  sums.reservations += 1;
  sums.reserve_wait += now_ - reserved.joined;
  passed_on_ = reserved;
  passed_on_.kv.forget();
  ask_for(reserved);
  const std::size_t reader = route(0, request_, now_);
  // A request that goes on after a failure is not turned away.
  if (sheds_ && reserved.attempts == 1 && sheds_reading(reader, index)) {
    expect_no_more(index, slot);
    return turn_away(RequestEnd::shed, reader, source);
  }
  const std::int32_t there = take_in(reader, passed_on_, passed_on_.token_by_reading());
  replicas_[reader].leads_to(there, std::int32_t(index), slot);
  replicas_[index].leads_to(slot, std::int32_t(reader), there);
  start_loads(reader);
  note(reader);
}

// The prompt has been read: its KV goes where blocks were set aside for it.
void ServingSim::push(std::size_t index, std::int32_t slot) {
  const Sequence& read = replicas_[index].sequence(slot);
  const auto target = std::size_t(read.to_replica);
  const std::int32_t there = read.to_slot;
  replicas_[target].was_read(there, read, std::int32_t(index), slot);
  ship(target, there);
}

// KV starts on its way to a replica that has room for it. What takes no time is there at once.
void ServingSim::fetch(std::size_t index, RequestSource& source) {
  Replica& replica = replicas_[index];
  for (std::int32_t slot; (slot = replica.make_room()) >= 0;) {
    if (replica.sequence(slot).whereabouts == Whereabouts::restored) {
      restore(index, slot);
    } else if (replica.sequence(slot).from_replica < 0) {
      dispatch(index, slot, source);
    } else {
      ship(index, slot);
    }
  }
}

// A preempted sequence has blocks again: its KV comes back from the host's memory.
void ServingSim::restore(std::size_t index, std::int32_t slot) {
  const PoolSetup& pool = problem_->pools[pool_of_[index]];
  const double tokens = double(replicas_[index].sequence(slot).target + pool.states);
  const double seconds = tokens * pool.from_host->seconds_per_token + pool.from_host->latency;
  transfers_.start_from_below(now_ + seconds, index, slot);
}

void ServingSim::ship(std::size_t index, std::int32_t slot) {
  const Carry& carry = stages()[stage_of(index)].carry;
  const Sequence& sequence = replicas_[index].sequence(slot);
  // Other answers begin a little before the end of the prompt, where the reader has kept a state, too.
  const double states = sequence.forks() ? 2 : 1;
  const Carry::Load load = carry.of(double(sequence.carried), states);
  PoolSums& sums = stats_.pool(pool_of_[index]);
  sums.carried_tokens += double(sequence.carried);
  sums.carried_states += states;
  const Shipment shipment{.from = std::size_t(sequence.from_replica),
                          .to = index,
                          .slot = slot,
                          .sent = load.sent,
                          .received = load.received,
                          .fabric = load.fabric,
                          .latency = carry.latency,
                          // Nothing is sent ahead to where there is no room.
                          .last_share = sequence.waited_for_room ? 1 : carry.last_share,
                          .reading_since = sequence.scheduled};
  const double alone =
      std::max({shipment.sent, shipment.received, shipment.fabric}) + shipment.latency;
  const bool nothing = sequence.carried == 0 && carry.state.sent + carry.state.received <= 0;
  if (nothing || alone <= kSameMoment) {
    deliver(index, slot);
  } else {
    const std::size_t sharing = transfers_.start(now_, shipment);
    charge(kWorkOfAnEvent * double(sharing));
  }
}

// Requests that are about to leave a replica's queue may have KV in tiers below the cache.
void ServingSim::load_from_below(std::size_t index) {
  Replica& replica = replicas_[index];
  if (!replica.has_tiers()) return;
  act(index, -1);
  for (const std::int32_t slot : replica.start_loads(now_)) {
    transfers_.start_from_below(replica.sequence(slot).loaded, index, slot);
  }
}

void ServingSim::take_delivery() {
  const Transfers::Arrived done = transfers_.take();
  if (done.shipment.to == kStillCrossing) return;
  if (done.shipment.to == kToEncoders) return start_encoders();
  if (done.shipment.from == kFromBelow) {
    const Sequence& sequence = replicas_[done.shipment.to].sequence(done.shipment.slot);
    if (sequence.awaits != Awaited::nothing) {
      return take_awaited(done.shipment.to, done.shipment.slot);
    }
    act(done.shipment.to, -1);
    if (sequence.whereabouts == Whereabouts::restored) {
      replicas_[done.shipment.to].restore(done.shipment.slot, now_);
    } else {
      replicas_[done.shipment.to].finish_load(done.shipment.slot, now_);
    }
    return note(done.shipment.to);
  }
  stats_.pool(pool_of_[done.shipment.to]).carry_seconds += now_ - done.started;
  deliver(done.shipment.to, done.shipment.slot);
}

void ServingSim::deliver(std::size_t index, std::int32_t slot) {
  const Sequence& sequence = replicas_[index].sequence(slot);
  const std::size_t from = std::size_t(sequence.from_replica);
  replicas_[from].release(sequence.from_slot, now_);
  note(from);
  replicas_[index].receive(slot, now_);
  note(index);
}

}  // namespace engine
