#include "sweep/space/index_set.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/base/random.h"

namespace sweep {
namespace {

TEST(IndexSet, JoinsNeighboursAndOverlaps) {
  IndexSet set;
  set.add({10, 20});
  set.add({30, 40});
  set.add({20, 30});
  set.add({5, 12});
  EXPECT_EQ(set.ranges(), (std::vector<IndexRange>{{5, 40}}));
  set.add({7, 7});
  EXPECT_EQ(set.count(), 35u);
}

TEST(IndexSet, SubtractsWhatIsDone) {
  IndexSet all({0, 100});
  IndexSet done;
  done.add({0, 10});
  done.add({50, 60});
  done.add({99, 200});
  EXPECT_EQ(all.minus(done).ranges(), (std::vector<IndexRange>{{10, 50}, {60, 99}}));
}

TEST(IndexSet, BehavesAsASetOfNumbers) {
  // Random ranges against std::set as the reference.
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    IndexSet a, b;
    std::set<std::uint64_t> in_a, in_b;
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::uint64_t begin = engine::random_bits(trial, engine::Stream::sampling, i) % 64;
      const std::uint64_t length = engine::random_bits(trial, engine::Stream::routing, i) % 9;
      (i % 2 ? a : b).add({begin, begin + length});
      for (std::uint64_t x = begin; x < begin + length; ++x) (i % 2 ? in_a : in_b).insert(x);
    }
    const IndexSet left = a.minus(b);
    EXPECT_EQ(a.count(), in_a.size());
    for (std::uint64_t x = 0; x < 80; ++x) {
      EXPECT_EQ(a.contains(x), in_a.count(x) == 1);
      EXPECT_EQ(left.contains(x), in_a.count(x) == 1 && in_b.count(x) == 0);
    }
  }
}

}  // namespace
}  // namespace sweep
