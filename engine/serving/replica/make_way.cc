// Priorities with preemption: running sequences make way for more urgent ones before the policy plans.
#include <algorithm>
#include <limits>

#include "engine/serving/lane/lane_sequences.h"

namespace engine {

std::int32_t LaneSequences::less_urgent_than(std::int64_t level) {
  constexpr std::int64_t last = UrgencyLists::kLast;
  std::int32_t best = -1;
  for (std::int32_t slot = urgency_.newest(last); slot >= 0; slot = urgency_.older(slot)) {
    if (at(slot).priority > level && (best < 0 || at(slot).priority > at(best).priority)) {
      best = slot;
    }
  }
  for (std::int64_t i = last - 1; i > level && best < 0; --i) best = urgency_.newest(i);
  return best;
}

std::int64_t LaneSequences::most_urgent_running() {
  constexpr std::int64_t last = UrgencyLists::kLast;
  for (std::int64_t i = 0; i < last; ++i) {
    if (urgency_.newest(i) >= 0) return i;
  }
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::int32_t slot = urgency_.newest(last); slot >= 0; slot = urgency_.older(slot)) {
    best = std::min(best, at(slot).priority);
  }
  return best;
}

std::int64_t LaneSequences::blocks_to_go_on() {
  const std::int64_t budget = replica_->common->settings->step_budget();
  const ReplicaView& view = *view_;
  std::int64_t blocks = set.running().next_blocks;
  for (const std::int32_t slot : set.running().prefilling) {
    const Sequence& sequence = at(slot);
    blocks += view.blocks_to_add(sequence, std::min(sequence.target - sequence.computed, budget));
  }
  return blocks;
}

void LaneSequences::add_room_of(const Sequence& sequence, Room& room) const {
  const std::int64_t budget = replica_->common->settings->step_budget();
  const ReplicaView& view = *view_;
  const std::int64_t held = view.blocks_held(sequence);
  const std::int64_t next =
      sequence.decoding
          ? view.blocks_to_decode(sequence)
          : view.blocks_to_add(sequence, std::min(sequence.target - sequence.computed, budget));
  room.own += held - sequence.kv.shared + next;
  room.blocks += view.pool.freed_by(sequence.kv, held, room.gone) + next;
  ++room.seats;
}

// Each sequence that leaves only adds to the room, so as soon as that suffices the others need not be looked at.
template <class Fits>
bool LaneSequences::fits_without_less_urgent(std::int64_t level, Fits fits) {
  Room room;
  for (std::int64_t i = UrgencyLists::kLast; i >= UrgencyLists::level_of(level); --i) {
    for (std::int32_t slot = urgency_.newest(i); slot >= 0; slot = urgency_.older(slot)) {
      if (at(slot).priority <= level) continue;
      add_room_of(at(slot), room);
      if (fits(room)) return true;
    }
  }
  return false;
}

bool LaneSequences::make_way() {
  bool made = false;
  // Where all that run are equally urgent, the policy picks.
  while (set.running().count > 0 && blocks_to_go_on() > replica_->pool.free()) {
    const std::int32_t victim = less_urgent_than(most_urgent_running());
    if (victim < 0) break;
    preempt(victim, false);
    made = true;
  }
  if (made && set.running().decoding > 0) return true;
  make_way_for_queue();
  return false;
}

// Blocks that are held for what waiting requests have loaded are given up where otherwise all running sequences would be preempted, or
// where nothing runs and the first in the queue cannot come in. Otherwise no request would go on.
void LaneSequences::plan_at_most(std::int64_t running, StepPlan& plan) {
  const auto ask_policy = [&] {
    const std::int64_t seats = view().seats;
    view_->seats = std::min(seats, running);
    replica_->common->plan(*view_, plan);
    view_->seats = seats;
  };
  ask_policy();
  while (replica_->loads() && keeps_nobody(plan) && replica_->let_go_of_loads()) {
    plan.clear();
    ask_policy();
    plan.steady = Steady::no;  // there is room to load into: the next step looks
  }
}

bool LaneSequences::keeps_nobody(const StepPlan& plan) const {
  const std::int64_t inside = set.running().count;
  if (inside > 0) return std::int64_t(plan.preempted.size()) == inside;
  return plan.empty() && replica_->running + replica_->parked == 0;
}

std::int64_t LaneSequences::blocks_to_let_in(const Sequence& head, const KvPool::Match& hit) {
  const bool reserves = policy_of(replica_->common->settings->policy).reserves;
  const ReplicaView& view = *view_;
  const std::int64_t tokens =
      reserves ? tokens_set_aside(view, head) + view.past_end() : head.target;
  return std::min(view.blocks_to_admit(hit, tokens), replica_->pool.total());
}

void LaneSequences::make_way_for_queue() {
  ReplicaState& replica = *replica_;
  const ReplicaView& seen = view();
  // Looks at as many waiting requests as a step can read. Sequences that make way queue up behind them.
  std::int64_t promised = 0, seats = 0, budget = replica.common->settings->step_budget();
  std::int64_t found = 0;  // by them, in what others hold
  std::int64_t to_go_on = blocks_to_go_on();
  for (std::int64_t i = 0; i < replica.waiting.size() && budget > 0; ++i) {
    const Sequence& head = at(replica.waiting.at(i));
    KvPool::Match hit = seen.match(head);
    std::int64_t blocks = blocks_to_let_in(head, hit);
    const auto fits = [&](const Room& more) {
      const std::int64_t free = replica.pool.free() - to_go_on - seen.margin() - promised;
      const bool suffices =
          blocks <= free + more.own || blocks + found + hit.blocks - hit.idle <= free + more.blocks;
      return suffices && set.running().count - more.seats + seats < seen.seats;
    };
    // No sequence makes way where that would not suffice.
    if (!fits({}) && !fits_without_less_urgent(head.priority, fits)) return;
    while (!fits({})) {
      const std::int32_t victim = less_urgent_than(head.priority);
      if (victim < 0) return;
      preempt(victim, false);
      to_go_on = blocks_to_go_on();
      hit = seen.match(head);
      blocks = blocks_to_let_in(head, hit);
    }
    promised += blocks;
    found += hit.blocks - hit.idle;
    ++seats;
    budget -= std::max<std::int64_t>(1, head.target - hit.tokens);
  }
}

}  // namespace engine
