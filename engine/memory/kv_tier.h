// Prefixes kept below the device's memory: in the memory of peers or of the host, on a disk, or in a store. It knows how many blocks
// there are of each, and gives up the least recently used first.
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
  std::int32_t at = 0;  // blocks of the extent before its place; 0: there is none
  // Kept because prompts begin to differ there, not because one ends there.
  bool parts_here = false;
};

// When something was used: the number of a moment, and a rank that orders what happens at one moment.
struct UseMoment {
  std::int64_t moment = 0;
  std::int32_t rank = -1;
  auto operator<=>(const UseMoment&) const = default;
};

class KvTier {
 public:
  // With 0 blocks there is no such tier. A state that is kept takes `state_blocks`.
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
  // Keeps so many blocks of an extent. It had fewer, or it was used again.
  void store(std::uint64_t key, std::int64_t blocks, KeptState state = {});
  // Drops the state of an extent, since a later one has taken its place.
  void drop_state(std::uint64_t key);
  void touch(std::uint64_t key);
  // What this tier gives up goes to `lower`; null: nowhere.
  void spill_to(KvTier* lower) { lower_ = lower; }

  // What is used from now on is used at the moment `now`. `set_moment` also goes back to an earlier moment, for a use that is told
  // late, and returns the moment before.
  void pass(UseMoment now) { now_ = std::max(now_, now); }
  UseMoment set_moment(UseMoment then) { return std::exchange(now_, then); }
  // The place of an extent of which the tier has at least so many blocks; -1: it has fewer. Uses of it may be told late until
  // `expect_no_more`. Before such an extent is given up, all users are asked once for the uses they have not told yet.
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
  bool is_shared() const {
    return bool(ask_for_uses_);
  }  // otherwise its only user tells every use at once

 private:
  struct Extent {
    std::uint64_t key = 0;
    std::int64_t blocks = 0;
    KeptState state;
    std::int32_t before = -1, after = -1;  // neighbours by last use
    UseMoment used;                        // the last use
    std::int32_t late_users = 0;
    std::int32_t loads = 0;  // under way
  };
  // Gives up what is too much, but nothing that is being loaded.
  void give_up_oldest();
  std::int32_t add(std::uint64_t key);
  void use(std::int32_t index);
  void link(std::int32_t index);
  void unlink(std::int32_t index);

  std::int64_t total_ = 0, used_ = 0, state_blocks_ = 0;
  std::vector<Extent> extents_;
  std::vector<std::int32_t> unused_;     // entries of `extents_` that can be used again
  std::int32_t first_ = -1, last_ = -1;  // the least and the most recently used
  KeyTable places_;
  KvTier* lower_ = nullptr;
  UseMoment now_;
  std::function<void()> ask_for_uses_;
  bool asks_ = false;  // users are being asked: nothing is given up until all have told
};

}  // namespace engine
