#include "engine/memory/kv_tier.h"

#include <algorithm>
#include <utility>

namespace engine {

void KvTier::reset(std::int64_t blocks, std::int64_t state_blocks) {
  total_ = blocks;
  state_blocks_ = state_blocks;
  used_ = 0;
  extents_.clear();
  unused_.clear();
  first_ = last_ = -1;
  now_ = {};
  if (exists()) places_.clear();
}

std::int32_t KvTier::add(std::uint64_t key) {
  if (unused_.empty()) {
    unused_.push_back(std::int32_t(extents_.size()));
    extents_.emplace_back();
  }
  const std::int32_t index = unused_.back();
  unused_.pop_back();
  extents_[std::size_t(index)] = {.key = key};
  places_.insert(key, index);
  return index;
}

// It is the last, but for those whose use was told before and is later.
void KvTier::link(std::int32_t index) {
  std::int32_t before = last_, after = -1;
  while (before >= 0 && now_ < extents_[std::size_t(before)].used) {
    after = std::exchange(before, extents_[std::size_t(before)].before);
  }
  Extent& extent = extents_[std::size_t(index)];
  extent.used = now_;
  extent.before = before;
  extent.after = after;
  (before >= 0 ? extents_[std::size_t(before)].after : first_) = index;
  (after >= 0 ? extents_[std::size_t(after)].before : last_) = index;
}

void KvTier::unlink(std::int32_t index) {
  const Extent& extent = extents_[std::size_t(index)];
  (extent.before >= 0 ? extents_[std::size_t(extent.before)].after : first_) = extent.after;
  (extent.after >= 0 ? extents_[std::size_t(extent.after)].before : last_) = extent.before;
}

void KvTier::use(std::int32_t index) {
  UseMoment& used = extents_[std::size_t(index)].used;
  if (now_ < used) return;
  if (index == last_) {
    used = now_;
    return;
  }
  unlink(index);
  link(index);
}

std::int32_t KvTier::expect_uses(std::uint64_t key, std::int64_t blocks) {
  const std::int32_t place = places_.find(key);
  if (place < 0 || extents_[std::size_t(place)].blocks < blocks) return -1;
  ++extents_[std::size_t(place)].late_users;
  return place;
}

void KvTier::store(std::uint64_t key, std::int64_t blocks, KeptState state) {
  blocks = std::min(blocks, total_);
  if (blocks <= 0) return;
  std::int32_t index = places_.find(key);
  if (index < 0) {
    index = add(key);
    link(index);
  } else {
    use(index);
  }
  Extent& stored = extents_[std::size_t(index)];
  used_ += std::max<std::int64_t>(0, blocks - stored.blocks);
  stored.blocks = std::max(stored.blocks, blocks);
  if (state.at > stored.state.at && state.at <= stored.blocks) {
    if (stored.state.at == 0) used_ += state_blocks_;
    stored.state = state;
  }
  give_up_oldest();
}

void KvTier::give_up_oldest() {
  while (used_ > total_ && !asks_) {
    std::int32_t first = first_;
    while (first >= 0 && extents_[std::size_t(first)].loads > 0) {
      first = extents_[std::size_t(first)].after;
    }
    if (first < 0) return;
    if (extents_[std::size_t(first)].late_users > 0 && is_shared()) {
      asks_ = true;
      ask_for_uses_();
      asks_ = false;
      continue;
    }
    Extent& oldest = extents_[std::size_t(first)];
    if (lower_ != nullptr) lower_->store(oldest.key, oldest.blocks, oldest.state);
    if (oldest.state.at > 0) {
      used_ -= state_blocks_;
      oldest.state = {};
      continue;
    }
    const std::int64_t given = std::min(used_ - total_, oldest.blocks);
    used_ -= given;
    oldest.blocks -= given;  // from its end
    if (oldest.blocks > 0) break;
    unlink(first);
    places_.erase(oldest.key);
    unused_.push_back(first);
  }
}

std::int32_t KvTier::begin_load(std::uint64_t key) {
  const std::int32_t index = exists() ? places_.find(key) : -1;
  if (index >= 0) ++extents_[std::size_t(index)].loads;
  return index;
}

void KvTier::end_load(std::int32_t place) {
  --extents_[std::size_t(place)].loads;
  give_up_oldest();
}

void KvTier::drop_state(std::uint64_t key) {
  const std::int32_t index = places_.find(key);
  if (index < 0 || extents_[std::size_t(index)].state.at == 0) return;
  used_ -= state_blocks_;
  extents_[std::size_t(index)].state = {};
}

void KvTier::touch(std::uint64_t key) {
  const std::int32_t index = exists() ? places_.find(key) : -1;
  if (index >= 0) use(index);
}

}  // namespace engine
