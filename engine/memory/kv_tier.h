// Prefixes kept below the device's memory, in that of its peers or its host, on a disk or in a store: how many blocks of
// which, the least recently used given up first.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/memory/key_table.h"

namespace engine {

constexpr std::size_t kTiers = 4;

// A state of a model with scans that is kept with an extent.
struct KeptState {
  std::int32_t at = 0;      // blocks of the extent before its place; 0: there is none
  bool parts_here = false;  // kept because prompts part there, not because one ends there
};

// When something was used: moments are counted, and what happens at one does so in the order of ranks.
struct UseMoment {
  std::int64_t moment = 0;
  std::int32_t rank = -1;
  auto operator<=>(const UseMoment&) const = default;
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

  // Whatever is used is so now; or it was then, and others that came after it have been told before. Returns what was set.
  void pass(UseMoment now) { now_ = std::max(now_, now); }
  UseMoment set_moment(UseMoment then) { return std::exchange(now_, then); }
  // The place of an extent of which it has at least so many blocks; -1: it has not. Uses of it may be told late until
  // `expect_no_more`: before it is given up, those who may have some to tell are asked for all of them, once and for all.
  std::int32_t expect_uses(std::uint64_t key, std::int64_t blocks);
  void expect_no_more(std::int32_t place) { --extents_[std::size_t(place)].late_users; }
  // While something of an extent is under way from here it is not given up, and others may take more room than there is. Returns
  // its place; -1: it is not here.
  std::int32_t begin_load(std::uint64_t key);
  void end_load(std::int32_t place);
  bool has_at(std::int32_t place, std::uint64_t key, std::int64_t blocks) const {
    const Extent& extent = extents_[std::size_t(place)];
    return extent.key == key && extent.blocks >= blocks;
  }
  void ask_for_uses(std::function<void()> ask) { ask_for_uses_ = std::move(ask); }
  bool is_shared() const { return bool(ask_for_uses_); }  // otherwise its one user tells in time

 private:
  struct Extent {
    std::uint64_t key = 0;
    std::int64_t blocks = 0;
    KeptState state;
    std::int32_t before = -1, after = -1;  // by last use,
    UseMoment used;                        // which was then
    std::int32_t late_users = 0;
    std::int32_t loads = 0;  // under way
  };
  // Gives up what is too much, and what nobody loads.
  void give_up_oldest();
  std::int32_t add(std::uint64_t key);
  void use(std::int32_t index);
  void link(std::int32_t index);
  void unlink(std::int32_t index);

  std::int64_t total_ = 0, used_ = 0, state_blocks_ = 0;
  std::vector<Extent> extents_;
  std::vector<std::int32_t> unused_;     // of these
  std::int32_t first_ = -1, last_ = -1;  // the least recently used first
  KeyTable places_;
  KvTier* lower_ = nullptr;
  UseMoment now_;
  std::function<void()> ask_for_uses_;
  bool asks_ = false;  // just now: nothing is given up before all have told
};

}  // namespace engine
