// Prefixes kept below the device's memory, in that of its peers or its host, on a disk or in a store: how many blocks of
// which, the least recently used given up first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/memory/key_table.h"

namespace engine {

constexpr std::size_t kTiers = 4;

// A state of a model with scans that is kept with an extent.
struct KeptState {
  std::int64_t at = 0;      // blocks of the extent before its place; 0: there is none
  bool parts_here = false;  // kept because prompts part there, not because one ends there
};

class KvTier {
 public:
  // No blocks: there is no such tier. A state that is kept takes as many as `state_blocks`.
  void reset(std::int64_t blocks, std::int64_t state_blocks = 0);
  bool exists() const { return total_ > 0; }

  std::int64_t blocks(std::uint64_t key) const {
    const std::int32_t found = places_.find(key);
    return found < 0 ? 0 : extents_[std::size_t(found)].blocks;
  }
  KeptState state(std::uint64_t key) const {
    const std::int32_t found = places_.find(key);
    return found < 0 ? KeptState{} : extents_[std::size_t(found)].state;
  }
  // An extent that others may share has so many blocks; more than it had, or it was used again.
  void store(std::uint64_t key, std::int64_t blocks, KeptState state = {});
  // A later one has taken its place.
  void drop_state(std::uint64_t key);
  void touch(std::uint64_t key);
  // What it gives up goes to this one, which may be none.
  void spill_to(KvTier* lower) { lower_ = lower; }

 private:
  struct Extent {
    std::uint64_t key = 0;
    std::int64_t blocks = 0;
    KeptState state;
    std::int32_t before = -1, after = -1;  // by last use
  };
  std::int32_t add(std::uint64_t key);
  void link_last(std::int32_t index);
  void unlink(std::int32_t index);

  std::int64_t total_ = 0, used_ = 0, state_blocks_ = 0;
  std::vector<Extent> extents_;
  std::vector<std::int32_t> unused_;     // of these
  std::int32_t first_ = -1, last_ = -1;  // the least recently used first
  KeyTable places_;
  KvTier* lower_ = nullptr;
};

}  // namespace engine
