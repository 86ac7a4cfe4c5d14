// Tiers of KV below the caches of replicas: when requests load from them, and what replicas that share a store see of one another.
// `replica/lower_tiers.h` says what the tiers have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/serving/mechanisms/fleet.h"

namespace engine {

// Whether replicas of a pool find what another one gives up of its cache, in a store that they share.
inline bool gives_up_in_sight(const PoolSetup& pool) {
  return pool.tiers[std::size_t(TierName::store)].blocks > 0 &&
         pool.settings.tiers.write == TierWrite::eviction && pool.replicas > 1;
}

class TiersBelow {
 public:
  // True where replicas of some pool have such tiers. To be called before replicas begin, which are told their store.
  bool start(Fleet& fleet);
  SharedStore* store_of(std::size_t pool);  // null: there is none

  // Requests that are about to leave a replica's queue begin to load.
  void start_loads(std::size_t replica);
  // What a sequence loaded, or what it had in the host's memory, is there.
  void finish_load(std::size_t replica, std::int32_t slot);

  // ---- where replicas see what another one gives up of its cache -----------------------------------
  bool in_sight() const { return in_sight_; }
  // Tells the pool's store that what it hears from now on is done by this replica at this moment. What several replicas do at one
  // moment counts in the order of their ranks.
  void act(std::size_t replica, std::int32_t rank);
  // A replica begins a turn. Afterwards: whether that has brought events of other replicas forward.
  void begin_turn(std::size_t replica);
  bool others_moved() const { return others_moved_; }

 private:
  // The store asks all replicas but the acting one for the prefixes that they have used, and hears of further uses at once.
  void tell_uses(std::size_t pool);

  Fleet* fleet_ = nullptr;
  std::vector<SharedStore> stores_;  // by pool
  bool in_sight_ = false;            // in some pool
  std::size_t acting_ = 0;           // the replica whose turn it is
  bool others_moved_ = false;
};

}  // namespace engine
