#include "engine/serving/mechanisms/outages.h"

#include <algorithm>

#include "engine/serving/mechanisms/hand_over.h"
#include "engine/serving/mechanisms/held_requests.h"
#include "engine/serving/mechanisms/images.h"
#include "engine/serving/mechanisms/several_answers.h"

namespace engine {

bool Outages::start(Fleet& fleet) {
  fleet_ = &fleet;
  failures_.resize(fleet.pools.size());
  for (std::size_t i = 0; i < fleet.pools.size(); ++i) {
    const PoolSetup& from = fleet.problem->pools[i];
    failures_[i].reset({.settings = from.settings.failures,
                        .units = fleet.pools[i].count / std::size_t(from.unit),
                        .seed = fleet.problem->seed,
                        .pool = std::uint32_t(i)});
  }
  return std::ranges::any_of(failures_, &Failures::any);
}

bool Outages::known() const {
  constexpr double enough = 30;
  double count = 0;
  for (const Failures& failures : failures_) count += failures.count();
  return std::ranges::none_of(failures_, &Failures::any) || count >= enough;
}

double Outages::next() const {
  double next = kNever;
  for (const Failures& failures : failures_) next = std::min(next, failures.next());
  return next;
}

void Outages::act(double time) {
  fleet_->now = std::max(fleet_->now, time);
  for (std::size_t pool = 0; pool < failures_.size(); ++pool) {
    if (failures_[pool].next() > time) continue;
    const std::size_t unit = failures_[pool].next_unit();
    return failures_[pool].under_repair(unit) ? repair(pool, unit) : fail(pool, unit);
  }
}

void Outages::fail(std::size_t index, std::size_t unit) {
  Pool& pool = fleet_->pools[index];
  const std::size_t size = pool.scaler.unit(), place = unit * size;
  if (!pool.scaler.is_on(place)) return failures_[index].pass_by(unit, fleet_->now);
  failures_[index].fail(unit);
  pool.scaler.fail(place, fleet_->now);
  fleet_->takers_changed(pool);
  for (std::size_t i = pool.first + place; i < pool.first + place + size; ++i) {
    fleet_->replicas[i].halt(fleet_->now);
    fleet_->note(i);
  }
  for (std::size_t i = pool.first + place; i < pool.first + place + size; ++i) {
    if (fleet_->replicas[i].at_rest()) abandon(i);
  }
}

void Outages::repair(std::size_t index, std::size_t unit) {
  Pool& pool = fleet_->pools[index];
  const double now = fleet_->now;
  const std::size_t size = pool.scaler.unit(), place = unit * size;
  failures_[index].repaired(unit, now);
  for (std::size_t i = place; i < place + size; ++i) fleet_->replicas[pool.first + i].restart(now);
  pool.scaler.repair(place, now);
  fleet_->takers_changed(pool);
  fleet_->with.held->send_all();
}

// Nothing is planned any more, and what there is of it goes elsewhere once its lanes are at rest.
void Outages::ends_work(std::size_t replica) {
  if (!fleet_->replicas[replica].at_rest()) return;
  abandon(replica);
  fleet_->find_interruptions();  // its repair
}

void Outages::abandon(std::size_t index) {
  Pool& pool = fleet_->home_of(index);
  Failures& failures = failures_[fleet_->pool_of[index]];
  const std::size_t size = pool.scaler.unit(), unit = (index - pool.first) / size;
  std::vector<Replica::Stranded> stranded;
  // KV that is under way to it, or from it, stays where it is.
  fleet_->replicas[index].strand(fleet_->now, stranded);
  fleet_->lose_adapters(index);
  fleet_->note(index);
  for (const Replica::Stranded& one : stranded) move_on(index, one);
  const auto first = fleet_->replicas.begin() + std::ptrdiff_t(pool.first + unit * size);
  const bool all = std::all_of(first, first + std::ptrdiff_t(size), [](const Replica& replica) {
    return replica.halted() && replica.at_rest();
  });
  if (!all || failures.under_repair(unit)) return;
  failures.went_down(unit, fleet_->now);
  // Some came to rest sooner: while the steps of the others went on, they were not down.
  for (auto replica = first; replica != first + std::ptrdiff_t(size); ++replica) {
    replica->waited_at_rest(fleet_->now);
  }
}

void Outages::move_on(std::size_t index, const Replica::Stranded& stranded) {
  Fleet& fleet = *fleet_;
  Sequence sequence = stranded.sequence;
  switch (sequence.whereabouts) {
    case Whereabouts::fetched:
    case Whereabouts::expected:
      fleet.transfers.cancel(fleet.now, index, stranded.slot);  // its KV, or its adapter
      if (sequence.from_replica < 0) return move_reservation(index, stranded);
      // Its KV is still where it was read.
      fleet.replicas[std::size_t(sequence.from_replica)].leads_to(sequence.from_slot, -1, -1);
      return fleet.with.hand_over->hand_over(std::size_t(sequence.from_replica),
                                             sequence.from_slot);
    case Whereabouts::awaiting:
      if (fleet.with.images != nullptr) fleet.with.images->withdraw(index, stranded.slot);
      [[fallthrough]];
    case Whereabouts::loading:
    case Whereabouts::restored:
      fleet.transfers.cancel(fleet.now, index, stranded.slot);
      break;
    case Whereabouts::leaving:
      call_back(index, stranded.slot, sequence);
      break;
    case Whereabouts::landed:
      // One that is made anew has been taken back already.
      if (sequence.waited_for_room && !fleet.stages().back().carry.remakes_first_token) {
        take_back_first_token(sequence);
      }
      break;
    case Whereabouts::running:
    case Whereabouts::waiting:
    case Whereabouts::kept:
    case Whereabouts::nowhere:
      break;
  }
  if (fleet.with.pushes != nullptr && fleet.stage_of(index) == 0 && sequence.to_replica >= 0 &&
      sequence.whereabouts != Whereabouts::leaving) {
    fleet.expect_no_more(std::size_t(sequence.to_replica), sequence.to_slot);
  }
  try_again(index, sequence);
}

void Outages::try_again(std::size_t index, Sequence& sequence) {
  Fleet& fleet = *fleet_;
  // What is kept of answers is up to the pool that writes them.
  const FailureSettings& settings = failures_[fleet.stages().back().pool].settings();
  fleet.stats.lost(sequence.computed);
  if (sequence.attempts >= settings.attempts) {
    const bool others_go_on = sequence.answers >= 0 && fleet.with.answers->groups().give_up(
                                                           sequence) == AnswerGroups::Left::some;
    if (others_go_on) return;
    fleet.stats.failed(sequence, fleet.now, std::int32_t(index));
    return fleet.source->answered(sequence.client, fleet.now);
  }
  ++sequence.attempts;
  fleet.stats.retried();
  if (settings.answers == AfterFailure::restart) sequence.generated = 0;
  fleet.with.held->send(sequence, Sent::after_failure);
}

// Tells the replica that expects the KV of a sequence that was read here that it will not come.
void Outages::call_back(std::size_t index, std::int32_t slot, Sequence& sequence) {
  if (sequence.to_replica < 0) {
    fleet_->with.held->hold_back_no_more(index, slot);
  } else {
    const auto there = std::size_t(sequence.to_replica);
    const bool fetched =
        fleet_->replicas[there].sequence(sequence.to_slot).whereabouts == Whereabouts::fetched;
    if (fetched) fleet_->transfers.cancel(fleet_->now, there, sequence.to_slot);
    fleet_->expect_no_more(there, sequence.to_slot);
  }
  take_back_first_token(sequence);
}

// A replica that is reading the prompt reads it to its end: it is not taken out of the steps that it is part of.
void Outages::move_reservation(std::size_t index, const Replica::Stranded& stranded) {
  const Sequence& sequence = stranded.sequence;
  if (sequence.whereabouts == Whereabouts::fetched && sequence.to_replica >= 0) {
    return fleet_->replicas[std::size_t(sequence.to_replica)].leads_to(sequence.to_slot, -1, -1);
  }
  fleet_->with.held->hold_back_no_more(index, stranded.slot);
  fleet_->with.held->send(sequence, Sent::after_failure);
}

// Its KV does not wait here for room elsewhere, where blocks may have been set aside for those that wait for room here.
void Outages::read_in_vain(std::size_t index, std::int32_t slot) {
  Sequence sequence = fleet_->replicas[index].sequence(slot);
  sequence.kv.forget();
  fleet_->replicas[index].release(slot, fleet_->now);
  fleet_->note(index);
  take_back_first_token(sequence);
  try_again(index, sequence);
}

// The token that reading gave was not told where the next pool tells it, once there is a seat.
void Outages::take_back_first_token(Sequence& sequence) const {
  if (fleet_->stages().back().carry.tells_first_token) --sequence.generated;
}

}  // namespace engine
