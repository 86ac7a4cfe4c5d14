// Turns of replicas that step together.
#include <algorithm>

#include "engine/serving/serving_sim.h"

namespace engine {

void ServingSim::start_groups(std::size_t index) {
  Pool& pool = pools_[index];
  const ModelShard& shard = problem_->pools[index].context.shard;
  const auto members = std::size_t(shard.lockstep ? shard.expert_replicas : 1);
  pool.groups.resize(members > 1 ? pool.count / members : 0);
  steps_together_ = steps_together_ || members > 1;
  for (std::size_t i = 0; i < pool.groups.size(); ++i) {
    pool.groups[i].reset({.table = &pool.table,
                          .sums = &stats_.pool(index),
                          .first = pool.first + i * members,
                          .members = members});
  }
}

LockstepGroup* ServingSim::group_of(std::size_t replica) {
  Pool& pool = pools_[pool_of_[replica]];
  if (pool.groups.empty()) return nullptr;
  return &pool.groups[(replica - pool.first) * pool.groups.size() / pool.count];
}

// Nobody's work is under way, and whatever comes at this moment has come: work ends and requests arrive before anybody
// plans. Whoever gets something while the others step waits for them.
void ServingSim::plan_together(LockstepGroup& group, std::size_t index) {
  if (group.steps_at(now_)) {
    replicas_[index].wait_until(group.until());
    return note(index);
  }
  const double now = std::max(now_, group.until());
  planned_.clear();
  for (std::size_t i = group.first(); i < group.end(); ++i) {
    if (events_.time_of(i) > now + kSameMoment) continue;
    planned_.push_back(i);
    replicas_[i].begin_turn(now);
    if (replicas_[i].expects()) fetch(i);
    replicas_[i].plan_in_group();
    start_loads(i);
  }
  const std::size_t working = group.begin(now);
  charge(kWorkOfAnEvent * double(working));
  for (const std::size_t i : planned_) {
    replicas_[i].end_turn(false);
    note(i);
  }
}

}  // namespace engine
