// The running sequences of a lane by how urgent they are, so that those that make way are found without looking at all others.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace engine {

// A list a level, in the order in which its sequences began to run. Beyond the last level all are in one list.
class UrgencyLists {
 public:
  static constexpr std::int64_t kLast = 3;
  static std::int64_t level_of(std::int64_t priority) { return std::min(priority, kLast); }

  void clear() { levels_.fill({}); }
  void join(std::int32_t slot, std::int64_t priority) {
    if (std::size_t(slot) >= links_.size()) links_.resize(std::size_t(slot) + 1);
    Level& level = levels_[std::size_t(level_of(priority))];
    links_[std::size_t(slot)] = {.older = level.newest};
    if (level.newest >= 0) links_[std::size_t(level.newest)].newer = slot;
    level.newest = slot;
  }
  void leave(std::int32_t slot, std::int64_t priority) {
    Level& level = levels_[std::size_t(level_of(priority))];
    const Links links = links_[std::size_t(slot)];
    if (links.older >= 0) links_[std::size_t(links.older)].newer = links.newer;
    (links.newer >= 0 ? links_[std::size_t(links.newer)].older : level.newest) = links.older;
  }
  // The newest sequence of a level, from which the list goes on to older ones; -1: there is none.
  std::int32_t newest(std::int64_t level) const { return levels_[std::size_t(level)].newest; }
  std::int32_t older(std::int32_t slot) const { return links_[std::size_t(slot)].older; }

 private:
  struct Level {
    std::int32_t newest = -1;
  };
  struct Links {
    std::int32_t older = -1, newer = -1;
  };
  std::array<Level, kLast + 1> levels_;
  std::vector<Links> links_;  // by slot
};

}  // namespace engine
