// Which blocks of a KV pool are taken first: its lists of what nobody uses, by age.
#include <algorithm>
#include <limits>

#include "engine/base/check.h"
#include "engine/memory/kv_pool.h"

namespace engine {

void KvPool::take_from_cache(std::int64_t blocks) {
  std::int64_t missing = blocks;
  const auto take_empty = [&](std::int64_t most) {
    const std::int64_t taken = std::min(missing, most);
    empty_ -= taken;
    missing -= taken;
    return taken;
  };
  while (missing > 0 && any_left_) {
    const std::int32_t index = left_.first;
    Extent& oldest = extents_[std::size_t(index)];
    const std::int64_t older = take_empty(oldest.empty_before);
    oldest.empty_before -= older;
    empty_before_left_ -= older;
    if (missing == 0) return;
    const std::int64_t given = std::min(missing, oldest.unused());
    missing -= given;
    give_up(index, given);
  }
  take_empty(empty_);
  while (missing > 0) {
    const std::int32_t index = plain_.first >= 0 ? plain_.first : pinned_.first;
    check(index >= 0, "blocks are taken only when they are free");
    if (extents_[std::size_t(index)].state_blocks > 0) {
      give_up_state(index);
      take_empty(empty_);
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

void KvPool::drop_unused(double now) {
  now_ = now;
  for (const UseOrder* order : {&left_, &plain_}) {
    for (std::int32_t index; (index = order->first) >= 0;) {
      const Extent& oldest = extents_[std::size_t(index)];
      if (oldest.used + kept_for_ > now) break;
      if (oldest.state_blocks > 0) {
        give_up_state(index);
        continue;
      }
      give(oldest.unused());
      give_up(index, oldest.unused());
    }
  }
}

double KvPool::next_to_expire() const {
  double oldest = std::numeric_limits<double>::infinity();
  if (kept_for_ <= 0) return oldest;
  for (const UseOrder* order : {&left_, &plain_}) {
    if (order->first < 0) continue;
    oldest = std::min(oldest, extents_[std::size_t(order->first)].used + kept_for_);
  }
  return oldest;
}

void KvPool::take_back(std::uint64_t key) {
  const std::int32_t index = table_.find(key);
  if (index < 0) return;
  const std::int64_t blocks = extents_[std::size_t(index)].blocks;
  give(blocks);
  idle_ -= blocks;
  unlink(index);
  erase(index);
}

void KvPool::unlink(std::int32_t index) {
  Extent& extent = extents_[std::size_t(index)];
  UseOrder& order = order_of(extent);
  if (extent.own) {
    // What was empty before it was so before the next one, too.
    if (extent.after >= 0) {
      extents_[std::size_t(extent.after)].empty_before += extent.empty_before;
    } else {
      empty_before_left_ -= extent.empty_before;
    }
    extent.empty_before = 0;
  }
  (extent.before >= 0 ? extents_[std::size_t(extent.before)].after : order.first) = extent.after;
  (extent.after >= 0 ? extents_[std::size_t(extent.after)].before : order.last) = extent.before;
  extent.before = extent.after = -1;
  extent.listed = false;
  any_left_ = left_.first >= 0;
}

void KvPool::link_last(std::int32_t index, bool pinned) {
  Extent& extent = extents_[std::size_t(index)];
  extent.listed = true;
  extent.pinned = pinned;
  extent.used = now_;
  if (extent.own) {
    extent.empty_before = empty_ - empty_before_left_;
    empty_before_left_ = empty_;
  }
  UseOrder& order = order_of(extent);
  extent.before = order.last;
  extent.after = -1;
  (order.last >= 0 ? extents_[std::size_t(order.last)].after : order.first) = index;
  order.last = index;
  any_left_ = left_.first >= 0;
}

}  // namespace engine
