// Which blocks of a KV pool are taken first: its lists of what nobody uses, by age.
#include <algorithm>
#include <limits>

#include "engine/base/check.h"
#include "engine/memory/kv_pool.h"

namespace engine {

void KvPool::take_from_cache(std::int64_t blocks) {
  std::int64_t missing = blocks;
  for (;;) {
    const std::int64_t taken = std::min(missing, oldest_);
    oldest_ -= taken;
    missing -= taken;
    if (missing == 0) return;
    const std::int32_t index = any_listed_ ? by_age_.first : pinned_.first;
    check(index >= 0, "blocks are taken only when they are free");
    if (extents_[std::size_t(index)].state_blocks > 0) {
      give_up_state(index);
      continue;
    }
    const std::int64_t given = std::min(missing, extents_[std::size_t(index)].unused());
    missing -= given;
    give_up(index, given);
  }
}

void KvPool::give_up(std::int32_t index, std::int64_t blocks) {
  Extent& extent = extents_[std::size_t(index)];
  set_blocks(extent, extent.blocks - blocks);
  idle_ -= blocks;
  evicted_ += blocks;
  if (extent.unused() > 0) return;
  unlink(index);
  if (extent.longest == 0) erase(index);
}

// Its blocks are still the oldest.
void KvPool::drop_unused(double now) {
  now_ = now;
  for (std::int32_t index; (index = by_age_.first) >= 0;) {
    const Extent& oldest = extents_[std::size_t(index)];
    if (oldest.used + kept_for_ > now) return;
    if (oldest.state_blocks > 0) {
      give_up_state(index);
      continue;
    }
    put_back(oldest.unused());
    give_up(index, oldest.unused());
  }
}

double KvPool::next_to_expire() const {
  if (!expires_ || !any_listed_) return std::numeric_limits<double>::infinity();
  return extents_[std::size_t(by_age_.first)].used + kept_for_;
}

void KvPool::take_back(std::uint64_t key) {
  const std::int32_t index = table_.find(key);
  if (index < 0) return;
  const std::int64_t blocks = extents_[std::size_t(index)].blocks;
  put_back(blocks);
  idle_ -= blocks;
  unlink(index);
  erase(index);
}

void KvPool::unlink(std::int32_t index) {
  Extent& extent = extents_[std::size_t(index)];
  UseOrder& order = order_of(extent);
  const std::int32_t before = extent.before, after = extent.after;
  (before >= 0 ? extents_[std::size_t(before)].after : order.first) = after;
  (after >= 0 ? extents_[std::size_t(after)].before : order.last) = before;
  extent.before = extent.after = -1;
  extent.listed = false;
  if (extent.pinned) return;
  // What was between it and its neighbours is between those.
  any_listed_ = by_age_.first >= 0;
  if (!any_listed_) {
    oldest_ += younger_;
    younger_ = between_ = 0;
  } else if (before < 0) {
    std::int64_t& now_oldest = extents_[std::size_t(after)].just_older;
    oldest_ += now_oldest;
    younger_ -= now_oldest;
    between_ -= now_oldest;
    now_oldest = 0;
  } else if (after >= 0) {
    extents_[std::size_t(after)].just_older += extent.just_older;
  } else {
    between_ -= extent.just_older;
  }
  extent.just_older = 0;
}

// It is the youngest.
void KvPool::link_last(std::int32_t index, bool pinned) {
  Extent& extent = extents_[std::size_t(index)];
  extent.listed = true;
  extent.pinned = pinned && !extent.own;
  extent.used = now_;
  UseOrder& order = order_of(extent);
  extent.before = order.last;
  extent.after = -1;
  (order.last >= 0 ? extents_[std::size_t(order.last)].after : order.first) = index;
  order.last = index;
  if (extent.pinned) return;
  extent.just_older = younger_ - between_;  // nothing where it is the only one: those are older than all that is listed
  between_ = younger_;
  any_listed_ = true;
}

}  // namespace engine
