#include "engine/serving/mechanisms/hand_over.h"

#include <algorithm>

#include "engine/serving/mechanisms/held_requests.h"
#include "engine/serving/mechanisms/outages.h"
#include "engine/serving/mechanisms/pushes.h"

namespace engine {

bool HandOver::start(Fleet& fleet) {
  fleet_ = &fleet;
  const auto keeps = [](const PoolSetup& pool) { return pool.from_host.has_value(); };
  return fleet.stages().size() > 1 || std::ranges::any_of(fleet.problem->pools, keeps);
}

bool HandOver::is_short(std::size_t& replica) {
  Pool& writers = fleet_->writers();
  if (writers.scaler.open() == 0) return false;
  const Request& request = fleet_->request;
  replica = fleet_->route(fleet_->stages().size() - 1, request, request.arrival);
  const std::int64_t cached = fleet_->replicas[replica].cached_tokens(request, request.arrival);
  const bool stays = request.prompt - cached <= fleet_->problem->journey.short_prompt;
  if (!stays) --writers.routed;  // to ask is not to send
  return stays;
}

void HandOver::hand_over(std::size_t index, std::int32_t slot) {
  Fleet& fleet = *fleet_;
  const Sequence& sequence = fleet.replicas[index].sequence(slot);
  if (fleet.with.pushes != nullptr) {
    return sequence.to_replica >= 0 ? fleet.with.pushes->push(index, slot)
                                    : fleet.with.outages->read_in_vain(index, slot);
  }
  fleet.ask_for(sequence);
  const std::size_t stage = fleet.stage_of(index) + 1;
  Pool& next = fleet.pool_at(stage);
  fleet.wake(next);
  if (next.scaler.open() == 0) return fleet.with.held->hold_back(index, slot);
  const std::size_t target = fleet.route(stage, fleet.request, fleet.now);
  const std::int32_t there = fleet.expect(target, sequence, std::int32_t(index), slot);
  fleet.replicas[index].leads_to(slot, std::int32_t(target), there);
}

void HandOver::fetch(std::size_t index) {
  Replica& replica = fleet_->replicas[index];
  for (std::int32_t slot; (slot = replica.make_room()) >= 0;) {
    if (replica.sequence(slot).whereabouts == Whereabouts::restored) {
      restore(index, slot);
    } else if (replica.sequence(slot).from_replica < 0) {
      fleet_->with.pushes->dispatch(index, slot);
    } else {
      ship(index, slot);
    }
  }
}

// A preempted sequence has blocks again: its KV comes back from the host's memory.
void HandOver::restore(std::size_t index, std::int32_t slot) {
  const PoolSetup& pool = fleet_->problem->pools[fleet_->pool_of[index]];
  const double tokens = double(fleet_->replicas[index].sequence(slot).target + pool.states);
  const double seconds = tokens * pool.from_host->seconds_per_token + pool.from_host->latency;
  fleet_->transfers.start_from_below(fleet_->now + seconds, index, slot);
}

void HandOver::ship(std::size_t index, std::int32_t slot) {
  const Carry& carry = fleet_->stages()[fleet_->stage_of(index)].carry;
  const Sequence& sequence = fleet_->replicas[index].sequence(slot);
  // Other answers begin a little before the end of the prompt, where the reader has kept a state, too.
  const double states = sequence.forks() ? 2 : 1;
  const Carry::Load load = carry.of(double(sequence.carried), states);
  PoolSums& sums = fleet_->sums_of(index);
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
    const std::size_t sharing = fleet_->transfers.start(fleet_->now, shipment);
    fleet_->charge(kWorkOfAnEvent * double(sharing));
  }
}

void HandOver::deliver(std::size_t index, std::int32_t slot) {
  Fleet& fleet = *fleet_;
  const Sequence& sequence = fleet.replicas[index].sequence(slot);
  const std::size_t from = std::size_t(sequence.from_replica);
  fleet.replicas[from].release(sequence.from_slot, fleet.now);
  fleet.note(from);
  fleet.replicas[index].receive(slot, fleet.now);
  fleet.note(index);
}

}  // namespace engine
