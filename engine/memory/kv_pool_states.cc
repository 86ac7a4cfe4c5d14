// States of models with scans in the cache. A state stands for all tokens before one place, so a request can go on only where one was
// kept. A state is kept at the last block boundary before the end of an extent: where a prompt or an answer ends, or where prompts begin
// to differ, in which case the request that differs computes it on its way. Engines with radix trees do that (SGLang's MambaRadixCache);
// engines that keep a state at every boundary fill their memory with states that are never asked for.
//
// A request that goes on from a state has a copy of its own, so no request holds the states in the cache. They take the room of blocks,
// and are given up before the blocks of their extent.
#include <algorithm>

#include "engine/memory/kv_pool.h"

namespace engine {

KvPool::Below::Resume KvPool::find_state(std::uint64_t key, const Found& found,
                                         std::span<KvTier* const, kTiers> tiers) const {
  const std::int64_t before = full_blocks(0, found.start);
  const std::int64_t last = std::min(found.blocks, full_blocks(0, found.most_tokens) - before);
  Below::Resume best;
  const auto look_at = [&](const KeptState& state, int from) {
    if (state.at <= best.state.at || state.at > last) return;
    best = {.tokens = (before + state.at) * block_size_, .state = state, .from = from};
  };
  if (const std::int32_t index = table_.find(key); index >= 0) {
    look_at(extents_[std::size_t(index)].state, -1);
  }
  for (std::size_t i = 0; i < kTiers; ++i) {
    if (tiers[i] != nullptr) look_at(tiers[i]->state(key), int(i));
  }
  return best;
}

KvPool::Match KvPool::look_up_states(std::span<const PrefixExtent> prefix,
                                     std::int64_t most_tokens) const {
  constexpr std::array<KvTier*, kTiers> none{};
  Match match, usable;
  std::int64_t start = 0;
  for (const PrefixExtent& part : prefix) {
    if (!find_part(part, start, most_tokens, match)) break;
    match.tokens = find_state(part.key, {start, match.last, most_tokens}, none).tokens;
    match.may_shrink = true;
    if (match.tokens > 0) usable = match;
    start = part.end;
    if (!match.whole || part.end >= most_tokens) break;
  }
  return usable;
}

bool KvPool::wants_state(std::span<const PrefixExtent> prefix, std::size_t part,
                         const Reached& reached, std::int64_t whole) const {
  // No whole block follows that ends before the last token, which is computed anew where a prompt ends with it.
  const bool last = full_blocks(prefix[part].end, whole - 1) <= 0;
  if (last || reached.end < prefix[part].end) return true;
  if (!reached.known) return false;
  // Prompts part here: what follows is new, or is the request's own.
  return part + 1 == prefix.size() || table_.find(prefix[part + 1].key) < 0;
}

void KvPool::keep_state(const Reached& reached, const KvHolding& holding) {
  const std::int64_t before_last =
      full_blocks(reached.start, reached.end - (reached.goes_on ? 0 : 1));
  const KeptState state{std::int32_t(before_last), reached.known};
  Extent& extent = extents_[std::size_t(reached.extent)];
  if (state.at <= extent.state.at) return;
  if (!reached.known) drop_earlier_states(holding, reached.extent);
  // Not given up for its own state.
  const bool stays_pinned = pinned(extent);
  unlist(reached.extent);
  if (extent.state.at > 0) clear_state(extent);
  if (free() - extent.unused() >= state_blocks_) place_state(extent, state);
  list(reached.extent, stays_pinned);
}

// Of an extent that is not among those which can be given up now.
void KvPool::place_state(Extent& extent, KeptState state) {
  take(state_blocks_);
  idle_ += state_blocks_;
  extent.state = state;
  if (tier_ == nullptr || !copies_at_once_) return;
  tier_->store(extent.key, extent.blocks, state);
  if (other_tier_ != nullptr) other_tier_->store(extent.key, extent.blocks, state);
}

void KvPool::clear_state(Extent& extent) {
  idle_ -= state_blocks_;
  put_back(state_blocks_);
  unlist_state(extent);
  extent.state = {};
}

// A conversation goes on from its last turn. Should others part from it earlier, they leave a state there.
void KvPool::drop_earlier_states(const KvHolding& holding, std::int32_t last) {
  for (const KvHolding::Part& part : holding.parts) {
    Extent& extent = extents_[std::size_t(part.extent)];
    if (part.extent == last || extent.state.at == 0 || extent.state.parts_here) continue;
    clear_state(extent);
    if (tier_ != nullptr) tier_->drop_state(extent.key);
    if (other_tier_ != nullptr) other_tier_->drop_state(extent.key);
  }
}

void KvPool::give_up_state(std::int32_t index) {
  Extent& extent = extents_[std::size_t(index)];
  if (tier_ != nullptr && !copies_at_once_) {
    tier_->store(extent.key, extent.blocks, extent.state);
    if (other_tier_ != nullptr) other_tier_->store(extent.key, extent.blocks, extent.state);
  }
  evicted_ += state_blocks_;
  clear_state(extent);
}

void KvPool::restore_state(std::uint64_t key, const Below::Resume& resume, std::int64_t room) {
  const std::int32_t index = table_.find(key);
  if (index < 0) return;
  Extent& extent = extents_[std::size_t(index)];
  if (resume.state.at > extent.blocks || resume.state.at <= extent.state.at) return;
  if (extent.state.at > 0) {
    clear_state(extent);
    room += state_blocks_;
  }
  if (room >= state_blocks_) place_state(extent, resume.state);
}

}  // namespace engine
