// Which blocks of a KV pool are taken first: the queue of free blocks by age.
//
// A request that uses a block uses all blocks before it in its sequence, and lets go of those after it. So within an extent, as within a
// sequence, blocks further from the start are older, and are given up first.
#include <algorithm>
#include <limits>

#include "engine/base/check.h"
#include "engine/memory/kv_pool.h"

namespace engine {
namespace {

// That an extent can give up before its state goes with them.
std::int64_t blocks_past_state(const auto& extent) { return extent.blocks - extent.state.at; }

}  // namespace

void KvPool::take_from_cache(std::int64_t blocks) {
  std::int64_t missing = blocks;
  for (;;) {
    const std::int64_t taken = std::min(missing, oldest_);
    oldest_ -= taken;
    missing -= taken;
    if (missing == 0) return;
    const std::int32_t first = any_listed_ ? by_age_.first : pinned_.first;
    check(first >= 0, "blocks are taken only when they are free");
    const Piece& piece = pieces_[std::size_t(first)];
    if (piece.state) {
      give_up_state(piece.extent);
      continue;
    }
    // A state that goes with a block is room as well: one by one or at once, that is taken before further blocks.
    const Extent& extent = extents_[std::size_t(piece.extent)];
    std::int64_t given = std::min<std::int64_t>(missing, piece.blocks);
    if (extent.state.at > 0) given = std::min(given, blocks_past_state(extent) + 1);
    missing -= given;
    give_up(first, given);
  }
}

void KvPool::take_late(std::int64_t blocks, UseMoment then) {
  if (!tier_->is_shared()) return take(blocks);
  const UseMoment now = tier_->set_moment(then);
  take(blocks);
  tier_->set_moment(now);
}

std::int64_t KvPool::expect_to_take_late() {
  const Piece* const first = any_listed_ ? &pieces_[std::size_t(by_age_.first)] : nullptr;
  const Extent* const extent = first != nullptr ? &extents_[std::size_t(first->extent)] : nullptr;
  const bool as_before = late_place_ >= 0 && extent != nullptr &&
                         tier_->has_at(late_place_, extent->key, extent->blocks);
  if (!as_before) {
    expect_to_take_nothing();
    if (extent == nullptr || extent->own) return oldest_;
    late_place_ = tier_->expect_uses(extent->key, extent->blocks);
  }
  if (late_place_ < 0 || first->state) return oldest_;
  // That a state goes is news.
  return oldest_ + std::min<std::int64_t>(first->blocks, blocks_past_state(*extent));
}

void KvPool::give_up(std::int32_t index, std::int64_t blocks) {
  Piece& piece = pieces_[std::size_t(index)];
  const std::int32_t of = piece.extent;
  Extent& extent = extents_[std::size_t(of)];
  set_blocks(extent, extent.blocks - blocks);
  idle_ -= blocks;
  evicted_ += blocks;
  // A request that shares only the beginning of the extent has made the state younger than the blocks before it.
  if (extent.state.at > extent.blocks) give_up_state(of);
  piece.blocks -= std::int32_t(blocks);
  if (piece.blocks > 0) return;
  check(piece.further < 0, "the end of an extent is given up first");
  std::int32_t* nearer = &extent.nearest;
  while (*nearer != index) nearer = &pieces_[std::size_t(*nearer)].further;
  *nearer = -1;
  free_piece(index);
  if (extent.blocks == 0 && extent.longest == 0) erase(of);
}

// Its blocks are still the oldest.
void KvPool::drop_unused(double now) {
  now_ = now;
  for (std::int32_t first; (first = by_age_.first) >= 0;) {
    const Piece& oldest = pieces_[std::size_t(first)];
    if (used_[std::size_t(first)] + kept_for_ > now) return;
    if (oldest.state) {
      give_up_state(oldest.extent);
      continue;
    }
    put_back(oldest.blocks);
    give_up(first, oldest.blocks);
  }
}

double KvPool::next_to_expire() const {
  if (!expires_ || !any_listed_) return std::numeric_limits<double>::infinity();
  return used_[std::size_t(by_age_.first)] + kept_for_;
}

void KvPool::take_back(std::uint64_t key) {
  const std::int32_t index = table_.find(key);
  if (index < 0) return;
  const std::int64_t blocks = extents_[std::size_t(index)].blocks;
  put_back(blocks);
  idle_ -= blocks;
  unlist(index);
  erase(index);
}

// ---- pieces of an extent ----------------------------------------------------------------------------

void KvPool::list(std::int32_t index, bool pinned) {
  const Extent& extent = extents_[std::size_t(index)];
  if (extent.state.at > 0) list_state(index, pinned);
  if (extent.unused() > 0 || (extent.blocks == 0 && extent.longest == 0)) {
    add_piece(index, extent.unused(), pinned);
  }
}

void KvPool::unlist(std::int32_t index) {
  Extent& extent = extents_[std::size_t(index)];
  unlist_state(extent);
  unlist_nearest(extent, extent.blocks);
}

void KvPool::unlist_nearest(Extent& extent, std::int64_t blocks) {
  while (extent.nearest >= 0) {
    const std::int32_t index = extent.nearest;
    Piece& piece = pieces_[std::size_t(index)];
    if (piece.blocks > blocks) {
      piece.blocks -= std::int32_t(blocks);
      return;
    }
    blocks -= piece.blocks;
    extent.nearest = piece.further;
    free_piece(index);
  }
}

// What lies before something that is pinned is so, too: it would be of no use alone.
void KvPool::add_piece(std::int32_t index, std::int64_t blocks, bool pinned) {
  Extent& extent = extents_[std::size_t(index)];
  const std::int32_t added = new_piece(index, blocks);
  Piece& piece = pieces_[std::size_t(added)];
  piece.pinned = (pinned && !extent.own) || this->pinned(extent);
  piece.further = extent.nearest;
  extent.nearest = added;
  link_last(added);
}

void KvPool::list_state(std::int32_t index, bool pinned) {
  Extent& extent = extents_[std::size_t(index)];
  unlist_state(extent);
  extent.state_piece = new_piece(index, state_blocks_);
  Piece& piece = pieces_[std::size_t(extent.state_piece)];
  piece.pinned = pinned;
  piece.state = true;
  link_last(extent.state_piece);
}

void KvPool::unlist_state(Extent& extent) {
  if (extent.state_piece >= 0) free_piece(extent.state_piece);
  extent.state_piece = -1;
}

std::int32_t KvPool::new_piece(std::int32_t extent, std::int64_t blocks) {
  std::int32_t index = unused_piece_;
  if (index >= 0) {
    unused_piece_ = pieces_[std::size_t(index)].after;
  } else {
    index = piece_count_++;
    if (pieces_.size() < std::size_t(piece_count_)) pieces_.emplace_back();
  }
  pieces_[std::size_t(index)] = {.extent = extent, .blocks = std::int32_t(blocks)};
  return index;
}

void KvPool::free_piece(std::int32_t index) {
  unlink(index);
  pieces_[std::size_t(index)].after = unused_piece_;
  unused_piece_ = index;
}

// ---- their order ------------------------------------------------------------------------------------

void KvPool::unlink(std::int32_t index) {
  Piece& piece = pieces_[std::size_t(index)];
  UseOrder& order = order_of(piece);
  const std::int32_t before = piece.before, after = piece.after;
  (before >= 0 ? pieces_[std::size_t(before)].after : order.first) = after;
  (after >= 0 ? pieces_[std::size_t(after)].before : order.last) = before;
  if (piece.pinned) return;
  // What was between it and its neighbours is between those.
  any_listed_ = by_age_.first >= 0;
  if (!any_listed_) {
    oldest_ += younger_;
    younger_ = between_ = 0;
  } else if (before < 0) {
    std::int64_t& now_oldest = pieces_[std::size_t(after)].just_older;
    oldest_ += now_oldest;
    younger_ -= now_oldest;
    between_ -= now_oldest;
    now_oldest = 0;
  } else if (after >= 0) {
    pieces_[std::size_t(after)].just_older += piece.just_older;
  } else {
    between_ -= piece.just_older;
  }
}

void KvPool::note_use(std::int32_t index) {
  if (used_.size() < pieces_.size()) used_.resize(pieces_.size());
  used_[std::size_t(index)] = now_;
}

// It is the youngest.
void KvPool::link_last(std::int32_t index) {
  Piece& piece = pieces_[std::size_t(index)];
  if (expires_) note_use(index);
  UseOrder& order = order_of(piece);
  piece.before = order.last;
  piece.after = -1;
  (order.last >= 0 ? pieces_[std::size_t(order.last)].after : order.first) = index;
  order.last = index;
  if (piece.pinned) return;
  // Nothing where it is the only one: all others are older.
  piece.just_older = younger_ - between_;
  between_ = younger_;
  any_listed_ = true;
}

}  // namespace engine
