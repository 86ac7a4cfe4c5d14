#include "engine/memory/kv_tier.h"

#include <algorithm>

namespace engine {

void KvTier::store(std::uint64_t key, std::int64_t blocks) {
  blocks = std::min(blocks, total_);
  if (blocks <= 0) return;
  const auto found = places_.find(key);
  if (found == places_.end()) {
    order_.push_back({key, 0});
    places_[key] = std::prev(order_.end());
  } else {
    order_.splice(order_.end(), order_, found->second);
  }
  Extent& stored = order_.back();
  used_ += std::max<std::int64_t>(0, blocks - stored.blocks);
  stored.blocks = std::max(stored.blocks, blocks);
  while (used_ > total_) {
    Extent& oldest = order_.front();
    const std::int64_t given = std::min(used_ - total_, oldest.blocks);
    if (lower_ != nullptr) lower_->store(oldest.key, oldest.blocks);
    used_ -= given;
    oldest.blocks -= given;  // from its end
    if (oldest.blocks > 0) break;
    places_.erase(oldest.key);
    order_.pop_front();
  }
}

void KvTier::touch(std::uint64_t key) {
  const auto found = places_.find(key);
  if (found != places_.end()) order_.splice(order_.end(), order_, found->second);
}

}  // namespace engine
