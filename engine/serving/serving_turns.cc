// Turns of a replica in which no sequence comes or goes, which are taken in loops of their own.
#include "engine/serving/sequences/whole_moments.h"
#include "engine/serving/serving_sim.h"

namespace engine {

bool ServingSim::only_takes_blocks(std::size_t index, double next_event) {
  Replica& replica = replicas_[index];
  for (;;) {
    others_moved_ = false;
    act(index, std::int32_t(index));
    if (!replica.only_takes_blocks()) return false;
    if (!keeps_turns_ || others_moved_ || !is_next(replica, next_event)) return true;
    begin_turn(index);
  }
}

bool ServingSim::only_goes_on(std::size_t index, double next_event) {
  Replica& replica = replicas_[index];
  while (replica.only_goes_on() && now_ + kSameMoment < next_event) {
    replica.go_on(now_);
    replica.end_turn(true);
    if (!is_next(replica, next_event)) return true;
    begin_turn(index);
  }
  return false;
}

void ServingSim::act(std::size_t replica, std::int32_t rank) {
  Pool& pool = pools_[pool_of_[replica]];
  if (!pool.common.tells_late) return;
  acting_ = replica;
  pool.store.tier.pass({moments_until(now_), rank});
}

void ServingSim::tell_uses(std::size_t index) {
  Pool& pool = pools_[index];
  for (std::size_t i = pool.first; i < pool.first + pool.count; ++i) {
    if (i == acting_) {
      replicas_[i].tell_no_more();
    } else {
      replicas_[i].tell_uses(now_);
    }
  }
  pool.common.tells_late = false;
  others_moved_ = true;
  for (std::size_t i = pool.first; i < pool.first + pool.count; ++i) {
    if (i == acting_) continue;
    replicas_[i].tell_at_once(now_);
    note(i);
  }
}

bool ServingSim::decode_on(std::size_t index, double next_event) {
  Replica& replica = replicas_[index];
  if (!replica.may_decode_on()) return true;
  const std::int64_t turns = replica.decode_on(std::min(next_event, interruption_));
  if (turns == 0) return true;
  charge(kWorkOfAnEvent * double(turns - 1));
  now_ = replica.now();
  if (!is_next(replica, next_event)) return false;
  begin_turn(index);
  return true;
}

}  // namespace engine
