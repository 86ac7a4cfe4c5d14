// The index of who holds what against a scan over all caches: whatever was computed, held, given up and
// asked for, the same cache is found to hold most of a prompt.
#include "engine/memory/prefix_holders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/random.h"
#include "engine/memory/kv_pool.h"

namespace engine {
namespace {

using Prefix = std::vector<PrefixExtent>;
constexpr std::int64_t kBlock = 4;

struct Held {
  KvHolding holding;
  std::int64_t blocks = 0;
};

struct Caches {
  std::vector<KvPool> pools;
  std::vector<std::vector<Held>> held;
  PrefixHolders holders;

  explicit Caches(std::size_t count) : pools(count), held(count) {
    for (std::size_t i = 0; i < count; ++i) {
      pools[i].reset(40, kBlock, true);
      pools[i].report_to(holders, std::int32_t(i));
    }
  }
  void compute(std::size_t at, const Prefix& prefix) {
    KvPool& pool = pools[at];
    const std::int64_t tokens = prefix.back().end;
    const KvPool::Match hit = pool.match(prefix, tokens - 1);
    const std::int64_t blocks = std::max(pool.blocks_for(tokens), hit.blocks);
    if (blocks - hit.blocks + hit.idle > pool.free()) return;
    Held mine{{}, blocks};
    pool.hold(prefix, hit, mine.holding);
    pool.take(blocks - mine.holding.shared);
    pool.publish(prefix, tokens, mine.holding);
    held[at].push_back(std::move(mine));
  }
  void release(std::size_t at, std::size_t which) {
    pools[at].release(held[at][which].holding, held[at][which].blocks);
    held[at].erase(held[at].begin() + std::ptrdiff_t(which));
  }
};

// Tokens of a prefix that a cache holds, and how light it is: the greatest is the best.
std::pair<std::int64_t, int> worth(const Caches& caches, std::size_t cache, const Prefix& prefix,
                                   std::int64_t most_tokens, const std::vector<int>& weights) {
  return {caches.pools[cache].match(prefix, most_tokens).tokens, -weights[cache]};
}

std::int32_t best_by_scan(const Caches& caches, const Prefix& prefix, std::int64_t most_tokens,
                          std::int32_t first, const std::vector<int>& weights) {
  auto best = std::size_t(first);
  for (std::size_t i = 0; i < caches.pools.size(); ++i) {
    const bool better = worth(caches, i, prefix, most_tokens, weights) >
                        worth(caches, best, prefix, most_tokens, weights);
    best = better ? i : best;
  }
  return std::int32_t(best);
}

TEST(PrefixHolders, FindWhatAScanFinds) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{5}, std::size_t{24}}) {
    Caches caches(count);
    int asked = 0, elsewhere = 0;
    for (std::uint64_t n = 0; n < 20'000; ++n) {
      const auto dice = [n, count](std::uint32_t lane, std::uint64_t sides) {
        return std::uint64_t(uniform(count, Stream::sampling, n, lane) * double(sides));
      };
      const std::size_t at = std::size_t(dice(0, count));
      if (dice(1, 2) == 0 && !caches.held[at].empty()) {
        caches.release(at, std::size_t(dice(2, caches.held[at].size())));
        continue;
      }
      // A prompt that all begin with, then turns of few conversations; each may end anywhere.
      Prefix prefix{{1, 10}};
      for (std::uint64_t turn = 0; turn < dice(3, 4); ++turn) {
        const std::uint64_t said = dice(4 + std::uint32_t(turn), 3);
        prefix.push_back({mixed_seed(prefix.back().key, said), prefix.back().end + 7});
      }
      prefix.back().end -= std::int64_t(dice(9, 7));
      const std::int64_t most_tokens = prefix.back().end + std::int64_t(dice(10, 9)) - 4;
      std::vector<int> weights;
      for (std::size_t i = 0; i < count; ++i)
        weights.push_back(int(dice(20 + std::uint32_t(i), 3)));
      const auto first = std::int32_t(std::ranges::min_element(weights) - weights.begin());
      const auto held = [&](std::int32_t cache) {
        return caches.pools[std::size_t(cache)].match(prefix, most_tokens).tokens;
      };
      const auto weight = [&](std::int32_t cache) { return weights[std::size_t(cache)]; };
      const std::int32_t scanned = best_by_scan(caches, prefix, most_tokens, first, weights);
      const PrefixHolders::Most found =
          caches.holders.most_of(prefix, most_tokens, kBlock, {first, held(first)}, held, weight);
      ASSERT_EQ(worth(caches, std::size_t(found.cache), prefix, most_tokens, weights),
                worth(caches, std::size_t(scanned), prefix, most_tokens, weights))
          << n;
      ASSERT_EQ(found.cache == first, scanned == first) << n;
      ASSERT_EQ(found.tokens, held(scanned)) << n;
      ++asked;
      elsewhere += scanned != first;
      caches.compute(at, prefix);
    }
    EXPECT_GT(asked, 9'000);
    EXPECT_GT(elsewhere, 500);
  }
}

TEST(PrefixHolders, ThePriceDoesNotFollowTheNumberOfHolders) {
  // All hold the common part; one of them a whole conversation.
  constexpr std::int32_t count = 1000, knows = 777;
  PrefixHolders holders;
  for (std::int32_t cache = 0; cache < count; ++cache) holders.change(1, cache, 0, 25);
  holders.change(2, knows, 0, 5);
  int asked = 0;
  const auto held = [&](std::int32_t cache) {
    ++asked;
    return std::int64_t(cache == knows ? 120 : 100);
  };
  const auto alike = [](std::int32_t) { return 0; };
  const auto found = [&](const Prefix& prefix, PrefixHolders::Most first) {
    return holders.most_of(prefix, 130, kBlock, first, held, alike).cache;
  };
  EXPECT_EQ(found({{1, 100}, {2, 120}}, {5, 100}), knows);
  // Nobody knows this one: of equals, the first is kept.
  EXPECT_EQ(found({{1, 100}, {3, 120}}, {5, 100}), 5);
  // Somebody who holds nothing is not.
  EXPECT_EQ(found({{1, 100}, {3, 120}}, {5, 0}), 0);
  EXPECT_LE(asked, 3);
  // Of many that hold as much, the lightest of the first few dozen is taken.
  const auto busier = [](std::int32_t cache) { return cache == 2000 ? -2 : cache == 20 ? -1 : 0; };
  EXPECT_EQ(holders.most_of(Prefix{{1, 100}, {3, 120}}, 130, kBlock, {2000, 0}, held, busier).cache,
            20);
  EXPECT_LE(asked, 5);
}

}  // namespace
}  // namespace engine
