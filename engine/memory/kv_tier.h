// Prefixes kept below the device's memory, in that of its peers or its host, on a disk or in a store: how many blocks of which, the least recently
// used given up first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace engine {

constexpr std::size_t kTiers = 4;

class KvTier {
 public:
  // No blocks: there is no such tier.
  void reset(std::int64_t blocks) {
    total_ = blocks;
    used_ = 0;
    order_.clear();
    places_.clear();
  }
  bool exists() const { return total_ > 0; }

  std::int64_t blocks(std::uint64_t key) const {
    const auto found = places_.find(key);
    return found == places_.end() ? 0 : found->second->blocks;
  }
  // An extent that others may share has so many blocks; more than it had, or it was used again.
  void store(std::uint64_t key, std::int64_t blocks);
  void touch(std::uint64_t key);
  // What it gives up goes to this one, which may be none.
  void spill_to(KvTier* lower) { lower_ = lower; }

 private:
  struct Extent {
    std::uint64_t key;
    std::int64_t blocks;
  };
  std::int64_t total_ = 0, used_ = 0;
  std::list<Extent> order_;  // the least recently used first
  std::unordered_map<std::uint64_t, std::list<Extent>::iterator> places_;
  KvTier* lower_ = nullptr;
};

}  // namespace engine
