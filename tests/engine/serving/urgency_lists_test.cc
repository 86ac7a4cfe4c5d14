#include "engine/serving/sequences/urgency_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "engine/base/random.h"

namespace engine {
namespace {

struct Runner {
  std::int32_t slot;
  std::int64_t priority;
};

// Those of a level, from the newest on, by looking at everybody.
std::vector<std::int32_t> counted(const std::vector<Runner>& running, std::int64_t level) {
  std::vector<std::int32_t> slots;
  for (const Runner& runner : running) {
    if (UrgencyLists::level_of(runner.priority) == level) slots.push_back(runner.slot);
  }
  std::ranges::reverse(slots);
  return slots;
}

std::vector<std::int32_t> listed(const UrgencyLists& lists, std::int64_t level) {
  std::vector<std::int32_t> slots;
  for (std::int32_t slot = lists.newest(level); slot >= 0; slot = lists.older(slot)) {
    slots.push_back(slot);
  }
  return slots;
}

TEST(UrgencyLists, EveryLevelListsItsOwnFromTheNewestOn) {
  UrgencyLists lists;
  lists.clear();
  std::vector<Runner> running;
  std::vector<std::int32_t> unused;
  for (std::int32_t slot = 0; slot < 20; ++slot) unused.push_back(slot);
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const double chance = uniform(1, Stream::priorities, n, 0);
    const bool joins = running.empty() || (!unused.empty() && chance < 0.5);
    if (joins) {
      // Some beyond the last level, which are in one list.
      const auto priority = std::int64_t(6 * uniform(1, Stream::priorities, n, 1));
      running.push_back({unused.back(), priority});
      unused.pop_back();
      lists.join(running.back().slot, priority);
    } else {
      const auto at = std::size_t(double(running.size()) * uniform(1, Stream::priorities, n, 2));
      lists.leave(running[at].slot, running[at].priority);
      unused.push_back(running[at].slot);
      running.erase(running.begin() + std::ptrdiff_t(at));
    }
    for (std::int64_t level = 0; level <= UrgencyLists::kLast; ++level) {
      ASSERT_EQ(listed(lists, level), counted(running, level));
    }
  }
}

}  // namespace
}  // namespace engine
