#include "engine/base/sorted_numbers.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/base/random.h"

namespace engine {
namespace {

// Whatever comes and goes, the next one is that of a tree; with few numbers, with thousands, and when all are gone again.
TEST(SortedNumbers, AreFoundAsInATree) {
  for (const std::uint64_t range : {10u, 1000u, 20'000u}) {
    SortedNumbers numbers;
    std::set<std::uint64_t> tree;
    const auto check_from = [&](std::uint64_t from) {
      const auto next = tree.lower_bound(from);
      ASSERT_EQ(numbers.first_from(from), next == tree.end() ? SortedNumbers::kNone : *next);
      ASSERT_EQ(numbers.empty(), tree.empty());
    };
    for (std::uint64_t n = 0; n < 40'000; ++n) {
      const auto dice = [&](std::uint32_t lane) {
        return std::uint64_t(uniform(range, Stream::sampling, n, lane) * double(range));
      };
      const std::uint64_t number = dice(0);
      if (tree.insert(number).second) {
        numbers.insert(number);
      } else {
        tree.erase(number);
        numbers.erase(number);
      }
      check_from(dice(1));
    }
    while (!tree.empty()) {
      const std::uint64_t last = *tree.rbegin();
      tree.erase(last);
      numbers.erase(last);
      check_from(last / 2);
    }
    numbers.insert(7);
    EXPECT_EQ(numbers.first_from(0), 7);
  }
}

}  // namespace
}  // namespace engine
