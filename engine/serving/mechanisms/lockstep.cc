#include "engine/serving/mechanisms/lockstep.h"

#include <algorithm>

#include "engine/serving/mechanisms/hand_over.h"
#include "engine/serving/mechanisms/outages.h"
#include "engine/serving/mechanisms/several_answers.h"
#include "engine/serving/mechanisms/tiers_below.h"

namespace engine {

bool Lockstep::start(Fleet& fleet) {
  fleet_ = &fleet;
  groups_.resize(fleet.pools.size());
  bool any = false;
  for (std::size_t index = 0; index < groups_.size(); ++index) {
    Pool& pool = fleet.pools[index];
    const PoolSetup& from = fleet.problem->pools[index];
    const ModelShard& shard = from.context.shard;
    const auto members = std::size_t(shard.lockstep ? shard.expert_replicas : 1);
    groups_[index].resize(members > 1 ? pool.count / members : 0);
    any = any || members > 1;
    for (std::size_t i = 0; i < groups_[index].size(); ++i) {
      groups_[index][i].reset(
          {.table = &pool.table,
           .sums = &fleet.stats.pool(index),
           .stats = &fleet.stats,
           .log = fleet.problem->step_log,
           .first = pool.first + i * members,
           .members = members,
           .role = from.role,
           .expiry_in_sight =
               gives_up_in_sight(from) && from.settings.retention.policy == Retention::ttl});
    }
  }
  return any;
}

LockstepGroup* Lockstep::group_of(std::size_t replica) {
  const std::size_t index = fleet_->pool_of[replica];
  std::vector<LockstepGroup>& groups = groups_[index];
  if (groups.empty()) return nullptr;
  return &groups[(replica - fleet_->pools[index].first) / groups[0].members()];
}

[[gnu::always_inline]] inline void Lockstep::note_turn(LockstepGroup& group, std::size_t index) {
  const Replica& replica = fleet_->replicas[index];
  group.wants_turn(index - group.first(), replica.working() ? kNever : replica.next_event());
}

bool Lockstep::note(std::size_t replica) {
  LockstepGroup* const group = group_of(replica);
  if (group == nullptr) return false;
  note_turn(*group, replica);
  weigh(replica);
  note_group(*group);
  return true;
}

// Work ends and requests arrive before anybody plans: whatever else comes at this moment comes first.
void Lockstep::advance(LockstepGroup& group, double next_event) {
  Fleet& fleet = *fleet_;
  const bool ended = group.steps();
  if (ended) group.end();
  const bool told = end_together(group);
  const bool plans = !ended || (!told && next_event > fleet.now + kSameMoment);
  for (const std::size_t index : going_on_) {
    // Only where nothing else may come at this moment, such as sequences of a replica that failed: those come first.
    if (plans && fleet.replicas[index].only_goes_on()) {
      fleet.charge(kWorkOfAnEvent);
      fleet.replicas[index].go_on(group.until());
    } else {
      end_member(group, index);
    }
  }
  if (plans) plan_together(group);
  note_group(group);
}

// True where a client was told. Members whose sequences only decode on are listed apart, since most need no further look.
[[gnu::always_inline]] inline bool Lockstep::end_together(LockstepGroup& group) {
  bool told = false;
  going_on_.clear();
  group.take_due([&](std::size_t member) {
    const std::size_t index = group.first() + member;
    if (fleet_->with.tiers == nullptr && fleet_->replicas[index].only_goes_on()) {
      going_on_.push_back(index);
    } else {
      told = end_member(group, index) || told;
    }
  });
  return told;
}

bool Lockstep::end_member(LockstepGroup& group, std::size_t index) {
  Fleet& fleet = *fleet_;
  Replica& replica = fleet.replicas[index];
  replica.end_work_at(group.until());
  const bool forks = !replica.forking().empty(), departs = !replica.departed().empty();
  if (forks) fleet.with.answers->begin_others(index);
  const bool told = departs && fleet.see_off(index);
  replica.end_turn(true);
  note_turn(group, index);
  if (forks || departs) weigh(index);
  if (replica.halted()) fleet.with.outages->ends_work(index);
  return told;
}

// Members that have something to plan do so, and the others go on as they were.
[[gnu::always_inline]] inline void Lockstep::plan_together(LockstepGroup& group) {
  Fleet& fleet = *fleet_;
  const double now = std::max(fleet.now, group.until());
  planned_.clear();
  const double latest = now + kSameMoment;
  for (std::size_t member = group.next_turn(0, latest); member < group.members();
       member = group.next_turn(member + 1, latest)) {
    const std::size_t i = group.first() + member;
    Replica& replica = fleet.replicas[i];
    planned_.push_back(i);
    replica.begin_turn(now);
    if (replica.expects()) fleet.with.hand_over->fetch(i);
    if (!replica.forking().empty()) {
      fleet.with.answers->begin_others(i);
      weigh(i);
    }
    // The others do not wait for a member that has to plan again.
    do {
      fleet.start_loads(i);
      if (fleet.with.tiers != nullptr && replica.expects()) fleet.with.hand_over->fetch(i);
      replica.plan();
    } while (replica.plans_again());
  }
  group.begin(now);
  fleet.charge(kWorkOfAnEvent * double(planned_.size()));
  for (const std::size_t i : planned_) {
    fleet.replicas[i].end_turn(false);
    note_turn(group, i);
  }
}

void Lockstep::settle() {
  for (std::vector<LockstepGroup>& groups : groups_) {
    for (LockstepGroup& group : groups) group.settle();
  }
}

}  // namespace engine
