// Tiers below a replica's cache: what they have of a prompt, and when it would be there.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/memory/kv_pool.h"
#include "engine/serving/replica/journey.h"
#include "engine/serving/sequences/sequence.h"

namespace engine {

// A store that all replicas of a pool load from, one load after the other.
struct SharedStore {
  KvTier tier;
  double free = 0;  // when it has sent what was asked for before
};

class LowerTiers {
 public:
  // What `pool` gives up, or all that it can share, goes down from here on. The store outlives the use; null: there is none.
  void reset(const TierSetups& ways, TierWrite write, SharedStore* store, KvPool& pool);
  bool any() const { return any_; }

  // What they have of a prefix beyond the cache, and when all of it could be there.
  struct Offer {
    std::array<double, kTiers> tokens{};  // that need not be read
    std::array<double, kTiers>
        moved{};  // what is loaded, as so many tokens' KV: a state counts, too
    std::array<double, kTiers> in_blocks{};  // of these, tokens: a state comes as a whole
    double end = 0;
    double all() const;
  };
  Offer offer(std::span<const PrefixExtent> prefix, std::int64_t most_tokens, double now);
  // What the cache itself had when that was asked.
  const KvPool::Match& here() const { return below_.here; }
  // An offer that was made just now, of this prefix, is taken: until `end_load` nothing of it is given up below.
  void take(const Offer& offer, std::span<const PrefixExtent> prefix, std::int32_t slot,
            double now);
  void end_load(std::int32_t slot);
  // What was offered has come: as far as there is room for it, it is in the cache now. Returns what of it was not there before.
  Sequence::Brought bring_up(std::span<const PrefixExtent> prefix, std::int64_t most_tokens);

  // The replica has failed: what lies in memory is gone, disk and store keep theirs.
  void lose_memory();
  // Its machine has been given back: only the store, which others share, keeps what it has.
  void lose_all();
  // Its own ways bring nothing that was asked for before.
  void restart(double now) { free_.fill(now); }

 private:
  void lose(std::size_t place);
  void end_loads();
  // But for the time.
  Offer look_below(std::span<const PrefixExtent> prefix, std::int64_t most_tokens);
  void offer_states(Offer& offer) const;
  // That the way up from a tier is in use.
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
  std::array<KvTier*, kTiers> tiers_{};  // those that exist, with the store, which others share
  std::array<double, kTiers>
      free_{};  // when they have brought what was asked for before; the store keeps its own
  SharedStore* store_ = nullptr;
  KvPool::Below below_;
  // Extents of which something is under way to whom.
  struct UnderWay {
    std::int32_t slot, place;
    std::size_t tier;
  };
  std::vector<UnderWay> under_way_;
  bool any_ = false;
};

}  // namespace engine
