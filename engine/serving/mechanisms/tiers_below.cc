#include "engine/serving/mechanisms/tiers_below.h"

#include <algorithm>

#include "engine/serving/sequences/whole_moments.h"

namespace engine {

bool TiersBelow::start(Fleet& fleet) {
  fleet_ = &fleet;
  in_sight_ = others_moved_ = false;
  stores_.resize(fleet.pools.size());
  bool any = false;
  for (std::size_t i = 0; i < stores_.size(); ++i) {
    const PoolSetup& from = fleet.problem->pools[i];
    stores_[i].tier.reset(from.tiers[std::size_t(TierName::store)].blocks,
                          from.state / from.settings.block_size);
    stores_[i].tier.ask_for_uses([this, i] { tell_uses(i); });
    stores_[i].free = 0;
    in_sight_ = in_sight_ || gives_up_in_sight(from);
    any = any ||
          std::ranges::any_of(from.tiers, [](const TierSetup& tier) { return tier.blocks > 0; });
  }
  return any;
}

SharedStore* TiersBelow::store_of(std::size_t pool) {
  return stores_[pool].tier.exists() ? &stores_[pool] : nullptr;
}

void TiersBelow::start_loads(std::size_t index) {
  Replica& replica = fleet_->replicas[index];
  if (!replica.has_tiers()) return;
  act(index, -1);
  for (const std::int32_t slot : replica.start_loads(fleet_->now)) {
    fleet_->transfers.start_from_below(replica.sequence(slot).loaded, index, slot);
  }
}

void TiersBelow::finish_load(std::size_t index, std::int32_t slot) {
  act(index, -1);
  fleet_->replicas[index].finish_load(slot, fleet_->now);
}

void TiersBelow::act(std::size_t replica, std::int32_t rank) {
  if (!fleet_->home_of(replica).common.tells_late()) return;
  acting_ = replica;
  stores_[fleet_->pool_of[replica]].tier.pass({moments_until(fleet_->now), rank});
}

void TiersBelow::begin_turn(std::size_t replica) {
  others_moved_ = false;
  act(replica, std::int32_t(replica));
}

void TiersBelow::tell_uses(std::size_t index) {
  Pool& pool = fleet_->pools[index];
  const double now = fleet_->now;
  for (std::size_t i = pool.first; i < pool.first + pool.count; ++i) {
    if (i == acting_) {
      fleet_->replicas[i].tell_no_more();
    } else {
      fleet_->replicas[i].tell_uses(now);
    }
  }
  pool.common.given_up = GivenUp::seen;
  others_moved_ = true;
  for (std::size_t i = pool.first; i < pool.first + pool.count; ++i) {
    if (i == acting_) continue;
    fleet_->replicas[i].tell_at_once(now);
    fleet_->note(i);
  }
}

}  // namespace engine
