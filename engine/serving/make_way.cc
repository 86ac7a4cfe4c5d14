// Priorities with preemption: who runs makes way for who is more urgent, before the policy plans.
#include <algorithm>

#include "engine/serving/lane_sequences.h"

namespace engine {

std::int32_t LaneSequences::less_urgent_than(std::int64_t level) {
  std::int64_t lowest = kLastLevel;
  while (lowest >= 0 && by_level_[std::size_t(lowest)] == 0) --lowest;
  if (lowest < kLastLevel && lowest <= level) return -1;
  std::int32_t best = -1;
  for (std::int32_t slot = set.running().last; slot >= 0; slot = at(slot).before) {
    if (at(slot).priority > level && (best < 0 || at(slot).priority > at(best).priority)) {
      best = slot;
    }
  }
  return best;
}

std::int64_t LaneSequences::most_urgent_running() {
  std::int64_t best = at(set.running().first).priority;
  for (std::int32_t slot = set.running().first; slot >= 0; slot = at(slot).after) {
    best = std::min(best, at(slot).priority);
  }
  return best;
}

std::int64_t LaneSequences::blocks_to_go_on() {
  const std::int64_t budget = replica_->settings->step_budget();
  std::int64_t blocks = set.running().next_blocks;
  for (const std::int32_t slot : set.running().prefilling) {
    const Sequence& sequence = at(slot);
    blocks += view_->blocks_to_add(sequence, std::min(sequence.target - sequence.computed, budget));
  }
  return blocks;
}

// What would come free if all who are less urgent left: what they hold, and what their next step would take.
LaneSequences::Room LaneSequences::room_of_less_urgent(std::int64_t level) {
  const std::int64_t budget = replica_->settings->step_budget();
  Room room;
  if (less_urgent_than(level) < 0) return room;
  for (std::int32_t slot = set.running().first; slot >= 0; slot = at(slot).after) {
    const Sequence& sequence = at(slot);
    if (sequence.priority <= level) continue;
    ++room.seats;
    // What it shares may be what somebody who waits has found.
    room.blocks += view_->blocks_held(sequence) - sequence.kv.shared;
    room.blocks +=
        sequence.decoding
            ? view_->blocks_to_decode(sequence)
            : view_->blocks_to_add(sequence, std::min(sequence.target - sequence.computed, budget));
  }
  return room;
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
  const RunningSet& running = set.running();
  if (made && running.decoding > 0 && running.next_blocks <= replica_->pool.free()) return true;
  make_way_for_queue();
  return false;
}

std::int64_t LaneSequences::blocks_to_let_in(const Sequence& head, const KvPool::Match& hit) {
  const bool reserves = policy_of(replica_->settings->policy).reserves;
  const std::int64_t answer = std::max(head.output, replica_->settings->max_output);
  const std::int64_t tokens =
      reserves ? head.prompt + answer + view_->pace.past_end() : head.target;
  return std::min(view_->blocks_to_admit(hit, tokens), replica_->pool.total());
}

void LaneSequences::make_way_for_queue() {
  ReplicaState& replica = *replica_;
  const ReplicaView& seen = view();
  // For those that wait, as many as a step can read. Whoever leaves queues up behind them.
  std::int64_t promised = 0, seats = 0, budget = replica.settings->step_budget();
  for (std::int64_t i = 0; i < replica.waiting.size() && budget > 0; ++i) {
    const Sequence& head = at(replica.waiting.at(i));
    std::int64_t blocks = 0;
    const auto fits = [&](const Room& more) {
      blocks = blocks_to_let_in(head, seen.match(head));
      const std::int64_t free = replica.pool.free() - blocks_to_go_on() - seen.margin() - promised;
      return blocks <= free + more.blocks && set.running().count - more.seats + seats < seen.seats;
    };
    // Nobody leaves in vain.
    if (!fits({}) && !fits(room_of_less_urgent(head.priority))) return;
    while (!fits({})) {
      const std::int32_t victim = less_urgent_than(head.priority);
      if (victim < 0) return;
      preempt(victim, false);
    }
    promised += blocks;
    ++seats;
    budget -= std::max<std::int64_t>(1, head.target - seen.match(head).tokens);
  }
}

}  // namespace engine
