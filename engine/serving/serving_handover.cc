// Parts of the simulation that carry KV caches: from one pool to the next, and from tiers below a replica.
#include <algorithm>

#include "engine/serving/serving_sim.h"

namespace engine {

// What a router is to know of a sequence that is on its way already.
void ServingSim::ask_for(const Sequence& sequence) {
  request_.number = sequence.number;
  request_.session = sequence.session;
  request_.prompt = sequence.prompt;
  request_.output = sequence.asked;
  request_.prefix = sequence.prefix;
  request_.service_class = sequence.service_class;
}

// The prompt has been read: a replica of the next pool is to go on, as soon as it has room.
void ServingSim::hand_over(std::size_t index, std::int32_t slot) {
  const Sequence& sequence = replicas_[index].sequence(slot);
  ask_for(sequence);
  const std::size_t stage = stage_of(index) + 1;
  if (pools_[stages()[stage].pool].scaler.open() == 0) {
    replicas_[index].leads_to(slot, -1, -1);
    held_back_.push_back({index, slot});
    return;
  }
  const std::size_t target = route(stage, request_, now_);
  const std::int32_t there = replicas_[target].expect(sequence, std::int32_t(index), slot, now_);
  replicas_[index].leads_to(slot, std::int32_t(target), there);
  note(target);
}

// KV starts on its way to a replica that has room for it. What takes no time is there at once.
void ServingSim::fetch(std::size_t index) {
  Replica& replica = replicas_[index];
  const Carry& carry = stages()[stage_of(index)].carry;
  for (std::int32_t slot; (slot = replica.make_room()) >= 0;) {
    const Sequence& sequence = replica.sequence(slot);
    const double tokens = double(sequence.carried);
    stats_.pool(pool_of_[index]).carried_tokens += tokens;
    const Shipment shipment{.from = std::size_t(sequence.from_replica),
                            .to = index,
                            .slot = slot,
                            .sent = tokens * carry.sent_per_token,
                            .received = tokens * carry.received_per_token,
                            .fabric = tokens * carry.fabric_per_token,
                            .latency = carry.latency,
                            // Nothing is sent ahead to where there is no room.
                            .last_share = sequence.waited_for_room ? 1 : carry.last_share,
                            .reading_since = sequence.scheduled};
    const double alone =
        std::max({shipment.sent, shipment.received, shipment.fabric}) + shipment.latency;
    if (sequence.carried == 0 || alone <= kSameMoment) {
      deliver(index, slot);
    } else {
      const std::size_t sharing = transfers_.start(now_, shipment);
      problem_->pools[0].context.charge(kWorkOfAnEvent * double(sharing));
    }
  }
}

// Whoever has become the first in a replica's queue may have KV below the cache.
void ServingSim::start_loads(std::size_t index) {
  Replica& replica = replicas_[index];
  if (!replica.has_tiers()) return;
  for (const std::int32_t slot : replica.start_loads(now_)) {
    transfers_.start_from_below(replica.sequence(slot).loaded, index, slot);
  }
}

void ServingSim::take_delivery() {
  const Transfers::Arrived done = transfers_.take();
  if (done.shipment.from == kFromBelow) {
    if (replicas_[done.shipment.to].sequence(done.shipment.slot).awaits_adapter) {
      return take_awaited(done.shipment.to, done.shipment.slot);
    }
    replicas_[done.shipment.to].finish_load(done.shipment.slot, now_);
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
