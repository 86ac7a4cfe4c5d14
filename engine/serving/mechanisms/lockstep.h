// Turns of replicas that share experts, which step together in groups. `lane/lockstep_group.h` says when a step of a group ends.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/serving/lane/lockstep_group.h"
#include "engine/serving/mechanisms/fleet.h"

namespace engine {

class Lockstep {
 public:
  // True where replicas of some pool step together. To be called before replicas begin, which are told their groups.
  bool start(Fleet& fleet);
  LockstepGroup* group_of(std::size_t replica);  // null: it steps on its own
  // Replicas of each group of a pool; 1: they step on their own.
  std::size_t members(std::size_t pool) const {
    return groups_[pool].empty() ? 1 : groups_[pool][0].members();
  }

  // A group takes its turn as one, at its first replica's place among the events.
  void advance(LockstepGroup& group, double next_event);
  // A replica's next event may have changed. False where it steps on its own.
  bool note(std::size_t replica);
  // The run is over.
  void settle();

 private:
  bool end_together(LockstepGroup& group);
  bool end_member(LockstepGroup& group, std::size_t replica);
  void plan_together(LockstepGroup& group);
  void note_turn(LockstepGroup& group, std::size_t replica);
  void note_group(const LockstepGroup& group) {
    fleet_->events.set(group.first(), group.next_event(), group.steps());
  }
  // After the number of requests in a member has changed.
  void weigh(std::size_t replica) {
    if (fleet_->compares) fleet_->weigh(replica);
  }

  Fleet* fleet_ = nullptr;
  std::vector<std::vector<LockstepGroup>> groups_;  // by pool; empty: each replica steps on its own
  // At the present event: members that plan, and members whose sequences only decode on.
  std::vector<std::size_t> planned_, going_on_;
};

}  // namespace engine
