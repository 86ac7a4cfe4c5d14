#include "sweep/space/shard.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

TEST(Shard, ShardsAreDisjointAndCoverEverything) {
  for (const std::uint64_t size : {0, 1, 63, 64, 65, 1000, 12345}) {
    for (const std::uint64_t shards : {1, 2, 3, 7, 500}) {
      IndexSet all;
      std::uint64_t count = 0;
      for (std::uint64_t k = 1; k <= shards; ++k) {
        const IndexSet shard = shard_of(size, k, shards);
        count += shard.count();
        for (const IndexRange& range : shard.ranges()) all.add(range);
      }
      EXPECT_EQ(count, size);
      EXPECT_EQ(all, IndexSet({0, size}));
    }
  }
}

TEST(Shard, NeighboursAreSpread) {
  const IndexSet first = shard_of(640, 1, 2);
  EXPECT_EQ(first.ranges().size(), 5U);
  EXPECT_TRUE(first.contains(0));
  EXPECT_FALSE(first.contains(64));
  EXPECT_TRUE(first.contains(128));
}

// 10^12 positions in blocks of 64 would be billions of ranges.
TEST(Shard, AHugeSpaceStillHasASmallSet) {
  const IndexSet shard = shard_of(1'000'000'000'000, 3, 4);
  EXPECT_LE(shard.ranges().size(), 1U << 17);
  EXPECT_NEAR(double(shard.count()), 250e9, 1e8);
}

}  // namespace
}  // namespace sweep
