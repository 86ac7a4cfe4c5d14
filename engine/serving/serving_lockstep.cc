// Turns of replicas that step together.
#include <algorithm>

#include "engine/serving/serving_sim.h"

namespace engine {

void ServingSim::start_groups(std::size_t index) {
  Pool& pool = pools_[index];
  const ModelShard& shard = problem_->pools[index].context.shard;
  const ServingSettings& settings = problem_->pools[index].settings;
  const auto members = std::size_t(shard.lockstep ? shard.expert_replicas : 1);
  pool.groups.resize(members > 1 ? pool.count / members : 0);
  steps_together_ = steps_together_ || members > 1;
  for (std::size_t i = 0; i < pool.groups.size(); ++i) {
    pool.groups[i].reset({.table = &pool.table,
                          .sums = &stats_.pool(index),
                          .stats = &stats_,
                          .log = problem_->step_log,
                          .first = pool.first + i * members,
                          .members = members,
                          .role = problem_->pools[index].role,
                          .expiry_in_sight = gives_up_in_sight(index) &&
                                             settings.retention.policy == Retention::ttl});
  }
}

LockstepGroup* ServingSim::group_of(std::size_t replica) {
  Pool& pool = pools_[pool_of_[replica]];
  if (pool.groups.empty()) return nullptr;
  return &pool.groups[(replica - pool.first) / pool.groups[0].members()];
}

[[gnu::always_inline]] inline void ServingSim::note_turn(LockstepGroup& group, std::size_t index) {
  const Replica& replica = replicas_[index];
  group.wants_turn(index - group.first(), replica.working() ? kNever : replica.next_event());
}

bool ServingSim::note_in_group(std::size_t replica) {
  LockstepGroup* const group = group_of(replica);
  if (group == nullptr) return false;
  note_turn(*group, replica);
  if (compares_) weigh(replica);
  note_group(*group);
  return true;
}

// Work ends and requests arrive before anybody plans: whatever else comes at this moment comes first.
void ServingSim::advance_group(LockstepGroup& group, double next_event, RequestSource& source) {
  const bool ended = group.steps();
  if (ended) group.end();
  const bool told = end_together(group, source);
  const bool plans = !ended || (!told && next_event > now_ + kSameMoment);
  for (const std::size_t index : going_on_) {
    // Only where nothing else may come at this moment, such as sequences of a replica that failed: those come first.
    if (plans && replicas_[index].only_goes_on()) {
      charge(kWorkOfAnEvent);
      replicas_[index].go_on(group.until());
    } else {
      end_member(group, index, source);
    }
  }
  if (plans) plan_together(group, source);
  note_group(group);
}

// True where a client was told. Members whose sequences only decode on are listed apart, since most need no further look.
[[gnu::always_inline]] inline bool ServingSim::end_together(LockstepGroup& group,
                                                            RequestSource& source) {
  bool told = false;
  going_on_.clear();
  group.take_due([&](std::size_t member) {
    const std::size_t index = group.first() + member;
    if (!loads_ && replicas_[index].only_goes_on()) {
      going_on_.push_back(index);
    } else {
      told = end_member(group, index, source) || told;
    }
  });
  return told;
}

bool ServingSim::end_member(LockstepGroup& group, std::size_t index, RequestSource& source) {
  Replica& replica = replicas_[index];
  replica.end_work_at(group.until());
  const bool forks = !replica.forking().empty(), departs = !replica.departed().empty();
  if (forks) fork(index, source);
  const bool told = departs && depart(index, source);
  replica.end_turn(true);
  note_turn(group, index);
  if (compares_ && (forks || departs)) weigh(index);  // it has more or fewer requests
  if (replica.halted() && replica.at_rest()) {
    abandon(index, source);
    find_interruptions();  // its repair
  }
  return told;
}

// Members that have something to plan do so, and the others go on as they were.
[[gnu::always_inline]] inline void ServingSim::plan_together(LockstepGroup& group,
                                                             RequestSource& source) {
  const double now = std::max(now_, group.until());
  planned_.clear();
  const double latest = now + kSameMoment;
  for (std::size_t member = group.next_turn(0, latest); member < group.members();
       member = group.next_turn(member + 1, latest)) {
    const std::size_t i = group.first() + member;
    Replica& replica = replicas_[i];
    planned_.push_back(i);
    replica.begin_turn(now);
    if (replica.expects()) fetch(i, source);
    if (!replica.forking().empty()) {
      fork(i, source);
      if (compares_) weigh(i);
    }
    // The others do not wait for a member that has to plan again.
    do {
      start_loads(i);
      if (loads_ && replica.expects()) fetch(i, source);
      replica.plan();
    } while (replica.plans_again());
  }
  group.begin(now);
  charge(kWorkOfAnEvent * double(planned_.size()));
  for (const std::size_t i : planned_) {
    replicas_[i].end_turn(false);
    note_turn(group, i);
  }
}

void ServingSim::settle_groups() {
  for (Pool& pool : pools_) {
    for (LockstepGroup& group : pool.groups) group.settle();
  }
}

}  // namespace engine
