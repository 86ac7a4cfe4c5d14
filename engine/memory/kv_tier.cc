#include "engine/memory/kv_tier.h"

#include <algorithm>

namespace engine {

void KvTier::reset(std::int64_t blocks, std::int64_t state_blocks) {
  total_ = blocks;
  state_blocks_ = state_blocks;
  used_ = 0;
  extents_.clear();
  unused_.clear();
  first_ = last_ = -1;
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

void KvTier::link_last(std::int32_t index) {
  Extent& extent = extents_[std::size_t(index)];
  extent.before = last_;
  extent.after = -1;
  (last_ >= 0 ? extents_[std::size_t(last_)].after : first_) = index;
  last_ = index;
}

void KvTier::unlink(std::int32_t index) {
  const Extent& extent = extents_[std::size_t(index)];
  (extent.before >= 0 ? extents_[std::size_t(extent.before)].after : first_) = extent.after;
  (extent.after >= 0 ? extents_[std::size_t(extent.after)].before : last_) = extent.before;
}

void KvTier::store(std::uint64_t key, std::int64_t blocks, KeptState state) {
  blocks = std::min(blocks, total_);
  if (blocks <= 0) return;
  std::int32_t index = places_.find(key);
  if (index < 0) {
    index = add(key);
  } else {
    unlink(index);
  }
  link_last(index);
  Extent& stored = extents_[std::size_t(index)];
  used_ += std::max<std::int64_t>(0, blocks - stored.blocks);
  stored.blocks = std::max(stored.blocks, blocks);
  if (state.at > stored.state.at && state.at <= stored.blocks) {
    if (stored.state.at == 0) used_ += state_blocks_;
    stored.state = state;
  }
  while (used_ > total_) {
    const std::int32_t first = first_;
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

void KvTier::drop_state(std::uint64_t key) {
  const std::int32_t index = places_.find(key);
  if (index < 0 || extents_[std::size_t(index)].state.at == 0) return;
  used_ -= state_blocks_;
  extents_[std::size_t(index)].state = {};
}

void KvTier::touch(std::uint64_t key) {
  const std::int32_t index = exists() ? places_.find(key) : -1;
  if (index < 0) return;
  unlink(index);
  link_last(index);
}

}  // namespace engine
