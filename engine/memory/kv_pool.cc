#include "engine/memory/kv_pool.h"

#include <algorithm>
#include <bit>

namespace engine {

void KvPool::reset(std::int64_t blocks, std::int64_t block_size, bool prefix_caching) {
  total_ = blocks;
  block_size_ = block_size;
  const auto unsigned_size = std::uint64_t(block_size);
  shift_ = std::has_single_bit(unsigned_size) ? std::countr_zero(unsigned_size) : -1;
  caching_ = prefix_caching;
  evicted_ = 0;
  kept_for_ = now_ = 0;
  expires_ = false;
  state_blocks_ = 0;
  late_place_ = -1;
  empty_out();
  holders_ = nullptr;
  tier_ = other_tier_ = nullptr;
}

void KvPool::empty_out() {
  oldest_ = total_;
  younger_ = between_ = 0;
  idle_ = held_ = uses_ = 0;
  extent_count_ = 0;  // what the extents hold in memory is used again
  unused_.clear();
  piece_count_ = 0;
  unused_piece_ = -1;
  by_age_ = pinned_ = {};
  any_listed_ = false;
  if (caching_) table_.clear();
}

void KvPool::lose_all() {
  if (holders_ != nullptr) {
    table_.each([this](std::int32_t index) {
      const Extent& extent = extents_[std::size_t(index)];
      if (!extent.own) holders_->change(extent.key, number_, extent.blocks, 0);
    });
  }
  expect_to_take_nothing();
  empty_out();
}

void KvPool::tell(const Extent& extent, std::int64_t blocks) {
  if (extent.own) return;
  if (holders_ != nullptr) holders_->change(extent.key, number_, extent.blocks, blocks);
  if (tier_ != nullptr && (copies_at_once_ ? blocks > extent.blocks : blocks < extent.blocks)) {
    const std::int64_t most = std::max<std::int64_t>(blocks, extent.blocks);
    tier_->store(extent.key, most);
    if (other_tier_ != nullptr) other_tier_->store(extent.key, most);
  }
}

void KvPool::look_below(std::span<const PrefixExtent> prefix, std::int64_t most_tokens,
                        std::span<KvTier* const, kTiers> tiers, Below& below) const {
  below.here = {};
  below.parts.clear();
  below.from.fill(0);
  below.resume = {};
  std::size_t extents_to_state = 0;
  std::array<std::int64_t, kTiers> from_to_state{};
  std::int64_t start = 0;
  bool goes_on_here = true;
  for (const PrefixExtent& part : prefix) {
    const std::int64_t wanted = blocks_to_share(part, start, most_tokens);
    const std::int32_t index = table_.find(part.key);
    std::int64_t found = 0;
    if (index >= 0) {
      const Extent& extent = extents_[std::size_t(index)];
      found = std::min<std::int64_t>(extent.blocks, wanted);
      if (goes_on_here) add_part(extent, part, start, most_tokens, below.here);
      goes_on_here = goes_on_here && below.here.whole;
    } else {
      goes_on_here = goes_on_here && pass_part(wanted, below.here);
    }
    for (std::size_t i = 0; i < kTiers && found < wanted; ++i) {
      if (tiers[i] == nullptr) continue;
      const std::int64_t more = std::clamp(tiers[i]->blocks(part.key), found, wanted) - found;
      below.from[i] += more;
      found += more;
    }
    below.parts.push_back({found, index});
    if (state_blocks_ > 0) {
      const Below::Resume resume = find_state(part.key, {start, found, most_tokens}, tiers);
      if (resume.tokens > below.resume.tokens) {
        below.resume = resume;
        extents_to_state = below.parts.size();
        from_to_state = below.from;
      }
    }
    start = part.end;
    if (found < wanted || part.end >= most_tokens) break;
  }
  count_tokens(most_tokens, below.here);
  if (state_blocks_ == 0) return;
  below.here = match(prefix, most_tokens);
  below.parts.erase(below.parts.begin() + extents_to_state, below.parts.end());
  below.from = from_to_state;
}

void KvPool::restore(std::span<const PrefixExtent> prefix, Below& below) {
  // What is there of it already is not given up for the rest: it is not listed meanwhile, so it stays where it is.
  std::int64_t own = 0;
  for (const Below::Part& part : below.parts) {
    if (part.extent < 0) continue;
    const Extent& extent = extents_[std::size_t(part.extent)];
    own += extent.unused() + (extent.state.at > 0 ? state_blocks_ : 0);
    unlist(part.extent);
  }
  std::int64_t room = free() - own;
  for (std::size_t i = 0; i < below.parts.size() && room > 0; ++i) {
    Below::Part& part = below.parts[i];
    const std::int64_t here = part.extent < 0 ? 0 : extents_[std::size_t(part.extent)].blocks;
    const std::int64_t brought = std::min(part.blocks - here, room);
    if (brought <= 0) continue;
    take(brought);
    room -= brought;
    if (part.extent < 0) part.extent = insert(prefix[i].key);
    set_blocks(extents_[std::size_t(part.extent)], here + brought);
    idle_ += brought;
    if (here + brought < part.blocks) break;
  }
  if (below.resume.from >= 0) {
    restore_state(prefix[below.parts.size() - 1].key, below.resume, room);
  }
  // Used last, its start last of all: that is given up last.
  for (std::size_t i = below.parts.size(); i-- > 0;) {
    if (below.parts[i].extent >= 0) list(below.parts[i].extent, false);
  }
}

bool KvPool::find_part(const PrefixExtent& part, std::int64_t start, std::int64_t most_tokens,
                       Match& match) const {
  const std::int32_t index = table_.find(part.key);
  if (index < 0) return pass_part(blocks_to_share(part, start, most_tokens), match);
  add_part(extents_[std::size_t(index)], part, start, most_tokens, match);
  return true;
}

KvPool::Match KvPool::look_up(std::span<const PrefixExtent> prefix,
                              std::int64_t most_tokens) const {
  Match match;
  std::int64_t start = 0;
  for (const PrefixExtent& part : prefix) {
    if (!find_part(part, start, most_tokens, match)) break;
    start = part.end;
    if (!match.whole || part.end >= most_tokens) break;
  }
  count_tokens(most_tokens, match);
  return match;
}

void KvPool::hold(std::span<const PrefixExtent> prefix, const Match& match, KvHolding& holding) {
  if (!caching_) return;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < match.extents; ++i) {
    std::int32_t index = table_.find(prefix[i].key);
    if (index < 0) index = insert(prefix[i].key);  // it has no whole block
    const std::int64_t blocks =
        i + 1 == match.extents ? match.last : full_blocks(start, prefix[i].end);
    start = prefix[i].end;
    add_holder(index, blocks);
    if (const std::int32_t state = extents_[std::size_t(index)].state_piece; state >= 0) {
      unlink(state);
      link_last(state);
    }
    holding.parts.push_back({index, std::int32_t(blocks)});
    holding.shared += blocks;
  }
  holding.next_extent = match.extents - (match.whole ? 0 : 1);
}

void KvPool::share(std::span<const PrefixExtent> prefix, std::int64_t tokens, Sharing how,
                   KvHolding& holding) {
  const std::int64_t whole = std::max(how.prompt, prefix.empty() ? 0 : prefix.back().end);
  while (holding.next_extent < prefix.size()) {
    const std::size_t i = holding.next_extent;
    const std::int64_t start = i == 0 ? 0 : prefix[i - 1].end;
    const bool in_part = how.ends_here && start < tokens;
    const std::int64_t end = in_part ? std::min(prefix[i].end, tokens) : prefix[i].end;
    if (end > tokens) return;
    ++holding.next_extent;
    const std::int64_t computed = full_blocks(start, end);
    const std::int32_t found = table_.find(prefix[i].key);
    const bool known = found >= 0;
    const std::int32_t index = known ? found : insert(prefix[i].key);
    Extent& extent = extents_[std::size_t(index)];
    extent.own = prefix[i].own();
    const bool goes_on = !in_part && end < whole;
    const Reached reached{index, start, end, goes_on, known && extent.blocks >= computed};
    const bool keeps =
        state_blocks_ > 0 && how.has_states && wants_state(prefix, i, reached, whole);
    // Another request has computed as much meanwhile: its copy is the shared one, and this one stays private.
    if (reached.known) {
      if (keeps) keep_state(reached, holding);
      continue;
    }
    // We know more of it than the cache. What the cache had already is there once from now on.
    const bool ours = !holding.parts.empty() && holding.parts.back().extent == index;
    const std::int64_t held = ours ? holding.parts.back().blocks : 0;
    if (ours) {
      remove_holder(index, held, false);
      holding.parts.pop_back();
    }
    give(extent.blocks - held);
    idle_ += computed - extent.blocks;
    set_blocks(extent, computed);
    add_holder(index, computed);
    holding.parts.push_back({index, std::int32_t(computed)});
    holding.shared += computed - held;
    if (keeps) keep_state(reached, holding);
  }
}

std::int64_t KvPool::freed_by(const KvHolding& holding, std::int64_t blocks,
                              std::vector<KvHolding::Part>& gone) const {
  std::int64_t freed = blocks - holding.shared;
  for (const KvHolding::Part& part : holding.parts) {
    if (extents_[std::size_t(part.extent)].one_holder()) {
      freed += part.blocks;
      continue;
    }
    const std::int32_t before = reach_without(part.extent, gone);
    gone.push_back(part);
    freed += before - reach_without(part.extent, gone);
  }
  return freed;
}

std::int32_t KvPool::reach_without(std::int32_t index,
                                   std::span<const KvHolding::Part> gone) const {
  const Extent& extent = extents_[std::size_t(index)];
  const auto leaves = [&](std::int32_t blocks) {
    return std::count_if(gone.begin(), gone.end(), [&](const KvHolding::Part& part) {
      return part.extent == index && part.blocks == blocks;
    });
  };
  if (leaves(extent.reach) < extent.longest) return extent.reach;
  std::int32_t reach = 0;
  for (const std::int32_t blocks : extent.less) {
    if (blocks > reach && leaves(blocks) < std::ranges::count(extent.less, blocks)) reach = blocks;
  }
  return reach;
}

void KvPool::let_go(const KvHolding& holding, bool pinned) {
  // From the end of the sequence: the start, which more requests share, is given up last.
  for (std::size_t i = holding.parts.size(); i-- > 0;) {
    remove_holder(holding.parts[i].extent, holding.parts[i].blocks, pinned);
  }
}

std::int32_t KvPool::Extent::reach_without(std::int64_t held) const {
  if (held < reach || longest > 1) return reach;
  return less.empty() ? 0 : *std::max_element(less.begin(), less.end());
}

void KvPool::add_holder(std::int32_t index, std::int64_t blocks) {
  uses_ += blocks;
  Extent& extent = extents_[std::size_t(index)];
  if (blocks < extent.reach) {
    extent.less.push_back(std::int32_t(blocks));
    return;
  }
  // One without a whole block is listed, too: what follows is found by way of it.
  if (blocks > extent.reach || extent.blocks == 0) unlist_nearest(extent, blocks - extent.reach);
  if (blocks > extent.reach) {
    if (extent.longest > 0) {
      extent.less.insert(extent.less.end(), std::size_t(extent.longest), extent.reach);
    }
    idle_ -= blocks - extent.reach;
    held_ += blocks - extent.reach;
    extent.reach = std::int32_t(blocks);
    extent.longest = 0;
  }
  ++extent.longest;
}

void KvPool::remove_holder(std::int32_t index, std::int64_t blocks, bool pinned) {
  uses_ -= blocks;
  Extent& extent = extents_[std::size_t(index)];
  if (blocks < extent.reach) {
    const auto one = std::find(extent.less.begin(), extent.less.end(), blocks);
    *one = extent.less.back();
    extent.less.pop_back();
    return;
  }
  const std::int32_t rest = extent.reach_without(blocks);
  if (--extent.longest > 0) return;
  const std::int64_t freed = extent.reach - rest;
  idle_ += freed;
  held_ -= freed;
  extent.reach = rest;
  if (!extent.less.empty()) extent.longest = std::int32_t(std::erase(extent.less, rest));
  if (extent.state.at > 0 && extent.state.at <= blocks) list_state(index, pinned);
  if (freed > 0 || extent.blocks == 0) add_piece(index, freed, pinned);
}

std::int32_t KvPool::insert(std::uint64_t key) {
  if (unused_.empty()) {
    unused_.push_back(extent_count_++);
    if (extents_.size() < std::size_t(extent_count_)) extents_.emplace_back();
  }
  const std::int32_t index = unused_.back();
  unused_.pop_back();
  Extent& extent = extents_[std::size_t(index)];
  extent.key = key;
  extent.blocks = extent.reach = extent.longest = 0;
  extent.state = {};
  extent.less.clear();
  extent.nearest = extent.state_piece = -1;
  extent.own = false;
  table_.insert(key, index);
  return index;
}

void KvPool::erase(std::int32_t extent) {
  table_.erase(extents_[std::size_t(extent)].key);
  unused_.push_back(extent);
}

}  // namespace engine
