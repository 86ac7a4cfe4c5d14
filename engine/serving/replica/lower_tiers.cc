#include "engine/serving/replica/lower_tiers.h"

#include <algorithm>
#include <numeric>

namespace engine {

double LowerTiers::Offer::all() const { return std::accumulate(tokens.begin(), tokens.end(), 0.0); }

void LowerTiers::reset(const TierSetups& ways, TierWrite write, SharedStore* store, KvPool& pool) {
  pool_ = &pool;
  ways_ = ways;
  store_ = store;
  under_way_.clear();
  free_.fill(0);
  any_ = false;
  // Each one spills to the next that exists.
  KvTier* lower = nullptr;
  for (std::size_t i = kTiers; i-- > 0;) {
    const bool shared = i == std::size_t(TierName::store);
    tiers_[i] = shared ? (store != nullptr ? &store->tier : nullptr) : &own_[i];
    if (!shared) own_[i].reset(ways[i].blocks, pool.state_blocks());
    if (tiers_[i] != nullptr && !tiers_[i]->exists()) tiers_[i] = nullptr;
    if (tiers_[i] == nullptr) continue;
    if (!shared) own_[i].spill_to(lower);
    lower = tiers_[i];
    any_ = true;
  }
  if (!any_) return;
  const bool at_once = write == TierWrite::through;
  pool.copy_down_to(*lower, at_once);
  // What others are to find cannot wait until it is given up here.
  if (at_once && store != nullptr && lower != &store->tier) pool.also_copy_to(store->tier);
}

LowerTiers::Offer LowerTiers::look_below(std::span<const PrefixExtent> prefix,
                                         std::int64_t most_tokens) {
  pool_->look_below(prefix, most_tokens, tiers_, below_);
  Offer offer;
  for (std::size_t i = 0; i < kTiers; ++i) {
    offer.tokens[i] = offer.moved[i] = offer.in_blocks[i] =
        double(below_.from[i]) * double(pool_->block_size());
  }
  if (pool_->state_blocks() > 0) offer_states(offer);
  return offer;
}

LowerTiers::Offer LowerTiers::offer(std::span<const PrefixExtent> prefix, std::int64_t most_tokens,
                                    double now) {
  Offer offer = look_below(prefix, most_tokens);
  offer.end = now;
  for (std::size_t i = 0; i < kTiers; ++i) {
    const double tokens = offer.moved[i];
    if (tokens <= 0) continue;
    // One load after the other; different ways at the same time.
    const double begin = std::max(now, way_free(i)) + ways_[i].latency;
    offer.end = std::max({offer.end, begin + seconds_of(offer, i),
                          begin + tokens * ways_[i].seconds_per_token_alone});
  }
  return offer;
}

// One state is loaded, that of the last place, and all tokens between here and there need not be read: those whose KV the
// cache has without a state count for the tier that has it.
void LowerTiers::offer_states(Offer& offer) const {
  double left = std::max(0.0, double(below_.resume.tokens - below_.here.tokens));
  std::size_t last = 0;
  for (std::size_t i = 0; i < kTiers; ++i) {
    offer.tokens[i] = std::min(offer.tokens[i], left);
    left -= offer.tokens[i];
    if (offer.moved[i] > 0) last = i;
  }
  if (below_.resume.from >= 0) {
    last = std::size_t(below_.resume.from);
    offer.moved[last] += double(pool_->state_blocks() * pool_->block_size());
  }
  offer.tokens[last] += left;
}

void LowerTiers::take(const Offer& offer, std::span<const PrefixExtent> prefix, std::int32_t slot,
                      double now) {
  for (std::size_t i = 0; i < kTiers; ++i) {
    if (offer.moved[i] <= 0) continue;
    for (const PrefixExtent& part : prefix.first(below_.parts.size())) {
      const std::int32_t place = tiers_[i]->begin_load(part.key);
      if (place >= 0) under_way_.push_back({slot, place, i});
    }
  }
  for (std::size_t i = 0; i < kTiers; ++i) {
    if (offer.moved[i] <= 0) continue;
    const double end = std::max(now, way_free(i)) + ways_[i].latency + seconds_of(offer, i);
    // Not through a reference to either: built by gcc 12 with -O1, the store to the array was lost.
    if (i == std::size_t(TierName::store)) {
      store_->free = end;
    } else {
      free_[i] = end;
    }
  }
}

void LowerTiers::end_load(std::int32_t slot) {
  std::erase_if(under_way_, [this, slot](const UnderWay& one) {
    if (one.slot != slot) return false;
    tiers_[one.tier]->end_load(one.place);
    return true;
  });
}

// Forgets all loads that are under way, because the requests that waited for them are gone.
void LowerTiers::end_loads() {
  for (const UnderWay& one : under_way_) tiers_[one.tier]->end_load(one.place);
  under_way_.clear();
}

void LowerTiers::lose(std::size_t place) {
  if (own_[place].exists()) own_[place].reset(ways_[place].blocks, pool_->state_blocks());
}

void LowerTiers::lose_memory() {
  end_loads();
  for (const TierName name : {TierName::peer, TierName::host}) lose(std::size_t(name));
}

void LowerTiers::lose_all() {
  end_loads();
  for (std::size_t place = 0; place < own_.size(); ++place) lose(place);
}

Sequence::Brought LowerTiers::bring_up(std::span<const PrefixExtent> prefix,
                                       std::int64_t most_tokens) {
  const Offer offer = look_below(prefix, most_tokens);
  Sequence::Brought brought;
  brought.before = std::int32_t(below_.here.tokens);
  std::ranges::transform(offer.tokens, brought.tokens.begin(),
                         [](double tokens) { return std::int32_t(tokens); });
  pool_->restore(prefix, below_);
  for (const PrefixExtent& part : prefix) {
    for (KvTier* tier : tiers_) {
      if (tier != nullptr) tier->touch(part.key);
    }
  }
  return brought;
}

}  // namespace engine
