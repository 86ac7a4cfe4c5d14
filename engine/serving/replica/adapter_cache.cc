#include "engine/serving/replica/adapter_cache.h"

#include <algorithm>

namespace engine {

void AdapterCache::reset(const Setup& setup) {
  setup_ = setup;
  entries_.clear();
  unused_.clear();
  link_free_ = 0;
  waiting.clear();
}

double AdapterCache::need(std::int64_t adapter, double now) {
  if (setup_.slots == 0) return now;
  if (const auto found = entries_.find(adapter); found != entries_.end()) {
    Entry& entry = found->second;
    if (entry.requests++ == 0) unused_.erase(entry.unused);
    return std::max(now, entry.ready);
  }
  if (std::int64_t(entries_.size()) >= setup_.slots) {
    if (unused_.empty()) return kNoRoom;
    entries_.erase(unused_.front());
    unused_.pop_front();
  }
  link_free_ = std::max(now, link_free_) + setup_.latency + setup_.load_seconds;
  entries_[adapter] = {.requests = 1, .ready = link_free_, .unused = unused_.end()};
  return link_free_;
}

void AdapterCache::release(std::int64_t adapter) {
  if (setup_.slots == 0) return;
  Entry& entry = entries_.at(adapter);
  if (--entry.requests > 0) return;
  unused_.push_back(adapter);
  entry.unused = std::prev(unused_.end());
}

}  // namespace engine
