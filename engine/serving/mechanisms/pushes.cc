#include "engine/serving/mechanisms/pushes.h"

#include "engine/serving/mechanisms/hand_over.h"
#include "engine/serving/mechanisms/held_requests.h"
#include "engine/serving/mechanisms/shedding.h"

namespace engine {

bool Pushes::start(Fleet& fleet) {
  fleet_ = &fleet;
  return fleet.problem->journey.pushes;
}

void Pushes::set_aside() {
  Fleet& fleet = *fleet_;
  const Request& request = fleet.request;
  Pool& writers = fleet.writers();
  if (writers.scaler.open() == 0) return fleet.with.held->hold(writers);
  const std::size_t target = fleet.route(fleet.stages().size() - 1, request, request.arrival);
  if (fleet.with.shedding != nullptr &&
      fleet.with.shedding->sheds_before_room(target, request.arrival)) {
    return fleet.turn_away(RequestEnd::shed, target);
  }
  begin(passed_on_, request);
  passed_on_.joined = request.arrival;
  fleet.expect(target, passed_on_, -1, -1);
}

void Pushes::set_aside_again(std::size_t writer, const Sequence& sequence) {
  passed_on_ = sequence;
  passed_on_.target = sequence.to_read();
  passed_on_.to_replica = passed_on_.to_slot = -1;
  passed_on_.received = passed_on_.read = -1;
  passed_on_.goes_on = false;  // what it had was lost: it comes as for the first time
  passed_on_.joined = fleet_->now;
  fleet_->expect(writer, passed_on_, -1, -1);
}

void Pushes::dispatch(std::size_t writer, std::int32_t slot) {
  Fleet& fleet = *fleet_;
  Pool& readers = fleet.readers();
  fleet.wake(readers);
  if (readers.scaler.open() == 0) return fleet.with.held->hold_back(writer, slot);
  const Sequence& reserved = fleet.replicas[writer].sequence(slot);
  PoolSums& sums = fleet.sums_of(writer);
  sums.reservations += 1;
  sums.reserve_wait += fleet.now - reserved.joined;
  passed_on_ = reserved;
  passed_on_.kv.forget();
  fleet.ask_for(reserved);
  const std::size_t reader = fleet.route(0, fleet.request, fleet.now);
  // A request that goes on after a failure is not turned away.
  if (fleet.with.shedding != nullptr && reserved.attempts == 1 &&
      fleet.with.shedding->sheds_reading(reader, writer)) {
    fleet.expect_no_more(writer, slot);
    return fleet.turn_away(RequestEnd::shed, reader);
  }
  const std::int32_t there = fleet.take_in(reader, passed_on_, passed_on_.token_by_reading());
  fleet.replicas[reader].leads_to(there, std::int32_t(writer), slot);
  fleet.replicas[writer].leads_to(slot, std::int32_t(reader), there);
  fleet.start_loads(reader);
  fleet.note(reader);
}

void Pushes::push(std::size_t reader, std::int32_t slot) {
  const Sequence& read = fleet_->replicas[reader].sequence(slot);
  const auto writer = std::size_t(read.to_replica);
  const std::int32_t there = read.to_slot;
  fleet_->replicas[writer].was_read(there, read, std::int32_t(reader), slot);
  fleet_->with.hand_over->ship(writer, there);
}

}  // namespace engine
