#include "engine/serving/sequences/longest_context.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/random_load.h"

namespace engine {
namespace {

// Sequences come and go at random; whoever is kept, the longest of all is known at every step.
TEST(LongestContext, IsThatOfWhoIsStillThere) {
  struct One {
    std::int64_t base, last_step;
  };
  for (std::uint64_t number = 0; number < 200; ++number) {
    toys::Dice dice(number);
    LongestContext longest;
    std::vector<One> all;
    for (std::int64_t step = 0; step < 100; ++step) {
      std::erase_if(all, [step](const One& one) { return one.last_step <= step; });
      for (std::int64_t n = dice.whole(0, 3); n > 0; --n) {
        all.push_back({dice.whole(1, 40) - step, step + dice.whole(1, 30)});
        longest.insert(all.back().base, all.back().last_step);
      }
      if (all.empty()) continue;
      const auto most = std::ranges::max_element(all, {}, &One::base);
      ASSERT_EQ(longest.at(step), most->base) << "case " << number << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace engine
