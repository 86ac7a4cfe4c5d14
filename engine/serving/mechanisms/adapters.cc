#include "engine/serving/mechanisms/adapters.h"

#include <algorithm>

namespace engine {

bool Adapters::start(Fleet& fleet) {
  fleet_ = &fleet;
  const std::int64_t asked = fleet.problem->load.adapters;
  const auto some = [asked](const PoolSetup& pool) {
    return pool.adapters.slots > 0 && pool.adapters.slots < asked;
  };
  const bool any = std::ranges::any_of(fleet.problem->pools, some);
  caches_.resize(any ? fleet.replicas.size() : 0);
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    const PoolSetup& pool = fleet.problem->pools[fleet.pool_of[i]];
    caches_[i].reset(some(pool) ? pool.adapters : AdapterCache::Setup{.slots = 0});
  }
  return any;
}

void Adapters::await(std::size_t index, std::int32_t slot, double now) {
  AdapterCache& cache = caches_[index];
  PoolSums& sums = fleet_->sums_of(index);
  Sequence& sequence = fleet_->replicas[index].sequence(slot);
  const double ready = cache.need(sequence.adapter, now);
  sums.adapters_asked += 1;
  if (ready <= now + kSameMoment) {
    sums.adapters_there += 1;
    return fleet_->go_on(index, slot, now);
  }
  sequence.awaits = Awaited::adapter;
  sequence.joined = now;
  if (ready < AdapterCache::kNoRoom) {
    fleet_->transfers.start_from_below(ready, index, slot);
  } else {
    cache.waiting.push_back(slot);
  }
}

void Adapters::withdraw(std::size_t index, std::int32_t slot) {
  if (std::erase(caches_[index].waiting, slot) > 0) return;
  const Sequence& sequence = fleet_->replicas[index].sequence(slot);
  if (sequence.awaits == Awaited::adapter) fleet_->transfers.cancel(fleet_->now, index, slot);
  release(index, sequence.adapter);
  find_room(index);
}

// In the order in which they came. A request whose adapter is loaded for another one goes on as well, and is not held up by those
// before it that want other adapters.
void Adapters::find_room(std::size_t index) {
  AdapterCache& cache = caches_[index];
  const double now = fleet_->now;
  std::size_t left = 0;
  for (std::size_t i = 0; i < cache.waiting.size(); ++i) {
    const std::int32_t slot = cache.waiting[i];
    const double ready = cache.need(fleet_->replicas[index].sequence(slot).adapter, now);
    if (ready == AdapterCache::kNoRoom) {
      // No waiting request has an adapter that was there before, so where the first finds no place, none of them does.
      if (i == 0) return;
      cache.waiting[left++] = slot;
      continue;
    }
    // One that is there already is there before anybody plans.
    if (ready <= now + kSameMoment) {
      fleet_->take_awaited(index, slot);
    } else {
      fleet_->transfers.start_from_below(ready, index, slot);
    }
  }
  cache.waiting.resize(left);
}

}  // namespace engine
