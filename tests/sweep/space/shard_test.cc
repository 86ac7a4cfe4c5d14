#include "sweep/space/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

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
        all.add(shard);
      }
      EXPECT_EQ(count, size);
      EXPECT_EQ(all, IndexSet({0, size}));
    }
  }
}

TEST(Shard, EveryShardHasItsShareOfASmallSpace) {
  for (std::uint64_t k = 1; k <= 8; ++k) EXPECT_EQ(shard_of(64, k, 8).count(), 8u);
}

// 10^12 positions in blocks of 64 would be billions of ranges.
TEST(Shard, AHugeSpaceStillHasASmallSet) {
  const IndexSet shard = shard_of(1'000'000'000'000, 3, 4);
  EXPECT_LE(shard.ranges().size(), 1U << 20);
  EXPECT_NEAR(double(shard.count()), 250e9, 1e8);
}

// What points may take, by their position in a grid of `size`.
struct Costs {
  std::string name;
  std::function<double(std::uint64_t index, std::uint64_t size)> of;
};

// Neither points nor their order repeat: 0 to 1.
double drawn(std::uint64_t index) { return std::fmod(double(index) * 0.754877666, 1.0); }

const std::vector<Costs> kSkewed = {
    {"the last twentieth takes a hundred times as long",
     [](auto i, auto size) { return i > size - size / 20 ? 100.0 : 1.0; }},
    {"every eighth takes a hundred times as long",
     [](auto i, auto) { return i % 8 == 5 ? 100.0 : 1.0; }},
    {"every 512th takes a hundred times as long",
     [](auto i, auto) { return i % 512 == 0 ? 100.0 : 1.0; }},
    {"grows with the position", [](auto i, auto size) { return 1 + 99.0 * double(i) / size; }},
    {"a long tail", [](auto i, auto) { return 1 / (0.001 + drawn(i)); }},
};

// When each of eight workers ends, each taking the next of `pieces` whenever it is free.
std::vector<double> ends(const Costs& costs, std::uint64_t size, std::uint64_t pieces) {
  std::vector<double> busy_until(8, 0.0);
  for (std::uint64_t piece = 1; piece <= pieces; ++piece) {
    double taken = 0;
    const IndexSet positions = shard_of(size, piece, pieces);
    for (const IndexRange& range : positions.ranges()) {
      for (std::uint64_t i = range.begin; i < range.end; ++i) taken += costs.of(i, size);
    }
    *std::ranges::min_element(busy_until) += taken;
  }
  return busy_until;
}

TEST(Shard, EightWorkersWhoTakePiecesEndTogetherHoweverUnequalThePointsAre) {
  for (const Costs& costs : kSkewed) {
    for (const std::uint64_t size : {20'000, 1'000'000}) {
      const std::vector<double> end = ends(costs, size, 8 * 32);
      const auto [first, last] = std::ranges::minmax(end);
      EXPECT_LT((last - first) / last, 0.10) << costs.name << ", " << size << " points";
    }
  }
}

// Shares that are fixed are fair samples, so even they are not far apart.
TEST(Shard, FixedSharesOfALargeSpaceTakeAlikeLong) {
  for (const Costs& costs : kSkewed) {
    const std::vector<double> end = ends(costs, 1'000'000, 8);
    const auto [first, last] = std::ranges::minmax(end);
    EXPECT_LT((last - first) / last, 0.10) << costs.name;
  }
}

}  // namespace
}  // namespace sweep
