#include "engine/serving/mechanisms/held_requests.h"

#include <algorithm>
#include <utility>

#include "engine/serving/mechanisms/hand_over.h"
#include "engine/serving/mechanisms/pushes.h"
#include "engine/serving/mechanisms/shedding.h"

namespace engine {

void HeldRequests::start(Fleet& fleet) {
  fleet_ = &fleet;
  requests_.clear();
  back_.clear();
}

std::int64_t HeldRequests::of_pool(std::size_t pool) const {
  const std::vector<Stage>& stages = fleet_->stages();
  std::int64_t held = 0;
  for (const Sequence& sequence : requests_) held += stages[entry_stage(sequence)].pool == pool;
  for (const HeldBack& one : back_) held += stages[awaited_stage(one)].pool == pool;
  return held;
}

bool HeldRequests::readers_fit(const Sequence& sequence) const {
  return fleet_->replicas[fleet_->readers().first].fits(sequence.to_read(), 1);
}

std::size_t HeldRequests::entry_stage(const Sequence& sequence) const {
  const Pushes* const pushes = fleet_->with.pushes;
  const bool reserves = pushes != nullptr && pushes->reserves(sequence);
  return !readers_fit(sequence) || reserves ? fleet_->stages().size() - 1 : 0;
}

void HeldRequests::hold(Pool& pool) {
  const Request& request = fleet_->request;
  // How long a repair takes is not known, so requests that wait for one are judged when it is over.
  const double opens = pool.scaler.opens();
  const double wait = opens < kNever ? std::max(0.0, opens - request.arrival) : 0;
  if (fleet_->with.shedding != nullptr && fleet_->with.shedding->sheds_after(wait, pool.first)) {
    ++pool.routed;  // it counts as having come, so that the replica that was started for it stays on
    return fleet_->turn_away(RequestEnd::shed, pool.first);
  }
  Sequence sequence;
  begin(sequence, request);
  requests_.push_back(std::move(sequence));
  fleet_->stats.held();
}

void HeldRequests::hold_back(std::size_t replica, std::int32_t slot) {
  fleet_->replicas[replica].leads_to(slot, -1, -1);
  back_.push_back({replica, slot});
}

void HeldRequests::hold_back_no_more(std::size_t replica, std::int32_t slot) {
  std::erase_if(back_,
                [&](const HeldBack& one) { return one.replica == replica && one.slot == slot; });
}

void HeldRequests::send_all() {
  std::vector<Sequence> requests;
  requests.swap(requests_);
  for (const Sequence& sequence : requests) {
    send(sequence, sequence.attempts > 1 ? Sent::after_failure : Sent::after_waiting);
  }
  std::vector<HeldBack> back;
  back.swap(back_);
  for (const HeldBack& one : back) {
    if (awaited_stage(one) > 0) {
      fleet_->with.hand_over->hand_over(one.replica, one.slot);
    } else {
      fleet_->with.pushes->dispatch(one.replica, one.slot);  // it has set blocks aside
    }
  }
}

void HeldRequests::send(const Sequence& sequence, Sent sent) {
  Fleet& fleet = *fleet_;
  const std::size_t stage = entry_stage(sequence);
  Pool& pool = fleet.pool_at(stage);
  fleet.wake(pool);
  if (pool.scaler.open() == 0) {
    requests_.push_back(sequence);
    return;
  }
  fleet.ask_for(sequence);
  const std::size_t target = fleet.route(stage, fleet.request, fleet.now);
  const bool sets_aside = stage > 0 && readers_fit(sequence);
  Shedding* const shedding = fleet.with.shedding;
  if (shedding != nullptr && sent == Sent::after_waiting &&
      (sets_aside ? shedding->sheds_before_room(target, fleet.now)
                  : shedding->sheds(target, stage > 0 ? Served::locally : Served::by_all_pools))) {
    return fleet.turn_away(RequestEnd::shed, target);
  }
  if (sets_aside) return fleet.with.pushes->set_aside_again(target, sequence);
  const std::int64_t output =
      fleet.stages()[stage].writes ? sequence.asked : sequence.token_by_reading();
  // What became of its images was lost with the replica that had them: they are encoded again.
  fleet.take_in(target, sequence, output);
  fleet.start_loads(target);
  fleet.note(target);
}

}  // namespace engine
