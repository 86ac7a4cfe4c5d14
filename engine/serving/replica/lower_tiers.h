// Tiers below a replica's cache: what they have of a prompt, and when that could be in the cache.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/memory/kv_pool.h"
#include "engine/serving/replica/journey.h"
#include "engine/serving/sequences/sequence.h"

namespace engine {

// A store from which all replicas of a pool load, one load after the other.
struct SharedStore {
  KvTier tier;
  double free = 0;  // when it will have sent all that was asked for
};

class LowerTiers {
 public:
  // From now on what `pool` gives up, or all that it can share, goes down. The store outlives the use; null: there is none.
  void reset(const TierSetups& ways, TierWrite write, SharedStore* store, KvPool& pool);
  bool any() const { return any_; }

  // What they have of a prefix beyond the cache, and when all of it could be there.
  struct Offer {
    // By tier: tokens that need not be read; what is loaded, counted in tokens' KV, states included; and of that the tokens, which
    // come block by block, while a state comes as a whole.
    std::array<double, kTiers> tokens{}, moved{}, in_blocks{};
    double end = 0;
    double all() const;
  };
  Offer offer(std::span<const PrefixExtent> prefix, std::int64_t most_tokens, double now);
  // What the cache itself had when the last offer was made.
  const KvPool::Match& here() const { return below_.here; }
  // Takes the offer that was made last, which is of this prefix. Until `end_load` the tiers give up nothing of it.
  void take(const Offer& offer, std::span<const PrefixExtent> prefix, std::int32_t slot,
            double now);
  void end_load(std::int32_t slot);
  // What was offered has arrived: puts it into the cache, as far as there is room for it. Returns what was not in the cache before.
  Sequence::Brought bring_up(std::span<const PrefixExtent> prefix, std::int64_t most_tokens);

  // The replica has failed: what lies in memory is lost, but disk and store keep what they have.
  void lose_memory();
  // The machine has been given back: only the store, which others share, keeps what it has.
  void lose_all();
  // Forgets loads of the replica's own tiers that were under way.
  void restart(double now) { free_.fill(now); }

 private:
  void lose(std::size_t place);
  void end_loads();
  // An offer whose `end` is not set yet.
  Offer look_below(std::span<const PrefixExtent> prefix, std::int64_t most_tokens);
  void offer_states(Offer& offer) const;
  // Seconds for which an offer uses the way up from a tier.
  double seconds_of(const Offer& offer, std::size_t tier) const {
    return offer.moved[tier] * ways_[tier].seconds_per_token +
           offer.in_blocks[tier] * ways_[tier].starts_per_token;
  }
  double way_free(std::size_t tier) const {
    return tier == std::size_t(TierName::store) ? store_->free : free_[tier];
  }

  KvPool* pool_ = nullptr;
  TierSetups ways_;
  std::array<KvTier, kTiers - 1> own_;   // of this replica
  std::array<KvTier*, kTiers> tiers_{};  // the shared store included; null: there is no such tier
  // When each has brought all that was asked for. The store has a time of its own.
  std::array<double, kTiers> free_{};
  SharedStore* store_ = nullptr;
  KvPool::Below below_;
  // Extents of which a load is under way, and the slot that it is for.
  struct UnderWay {
    std::int32_t slot, place;
    std::size_t tier;
  };
  std::vector<UnderWay> under_way_;
  bool any_ = false;
};

}  // namespace engine
