// What a sequence that makes way leaves in the cache for itself, and finds when it comes back.
#include <gtest/gtest.h>

#include "engine/base/random.h"
#include "engine/memory/kv_pool.h"

namespace engine {
namespace {

using Prefix = std::vector<PrefixExtent>;

KvPool pool_of(std::int64_t blocks) {
  KvPool pool;
  pool.reset(blocks, 4, true);
  return pool;
}

// It comes back.
void take_back(KvPool& pool, Prefix& prefix) {
  pool.take_back(prefix.back().key);
  prefix.pop_back();
}

// It computes so many tokens and makes way, under a key of its own.
void leave(KvPool& pool, Prefix& prefix, std::int64_t tokens, std::uint64_t key) {
  KvHolding holding;
  const KvPool::Match hit = pool.match(prefix, tokens);
  pool.hold(prefix, hit, holding);
  const std::int64_t blocks = pool.blocks_for(tokens);
  pool.take(blocks - holding.shared);
  prefix.push_back({key, PrefixExtent::kOpen});
  pool.publish_all(prefix, tokens, holding);
  pool.release(holding, blocks);
}

TEST(KvPoolOwn, WhoMakesWayFindsWholeBlocksUntilTheyAreNeeded) {
  KvPool pool = pool_of(10);
  // 8 tokens that others may share, and 14 of its own: of 22, five blocks are full.
  Prefix prefix{{1, 8}};
  leave(pool, prefix, 22, 99);
  EXPECT_EQ(pool.free(), 10);
  EXPECT_EQ(pool.idle(), 5);
  EXPECT_EQ(pool.match(prefix, 22).tokens, 20);
  EXPECT_EQ(pool.match(Prefix{{1, 8}, {98, PrefixExtent::kOpen}}, 22).tokens, 8);
  // Five blocks are empty; then its own go, from their end, before what others may share.
  pool.take(5);
  EXPECT_EQ(pool.match(prefix, 22).tokens, 20);
  pool.take(1);
  EXPECT_EQ(pool.match(prefix, 22).tokens, 16);
  pool.take(2);
  EXPECT_EQ(pool.match(prefix, 22).tokens, 8);
  pool.give(8);
}

// Engines take the oldest free block: what comes free later does not save what was left before.
TEST(KvPoolOwn, BlocksThatComeFreeLaterAreTakenLater) {
  KvPool pool = pool_of(10);
  pool.take(5);
  Prefix prefix{{1, 8}};
  leave(pool, prefix, 20, 99);
  pool.give(5);
  EXPECT_EQ(pool.match(prefix, 20).tokens, 20);
  pool.take(2);
  EXPECT_EQ(pool.match(prefix, 20).tokens, 12);
  pool.take(1);
  EXPECT_EQ(pool.match(prefix, 20).tokens, 8);
  // What others may share came free after it and before the five.
  pool.take(1);
  EXPECT_EQ(pool.match(prefix, 20).tokens, 4);
  pool.take(1);
  EXPECT_EQ(pool.match(prefix, 20).tokens, 0);
  pool.give(5);
}

TEST(KvPoolOwn, WhatIsTakenBackIsInNoCache) {
  KvPool pool = pool_of(10);
  Prefix prefix{{1, 8}};
  leave(pool, prefix, 22, 99);
  take_back(pool, prefix);
  EXPECT_EQ(prefix.size(), 1);
  EXPECT_EQ(pool.free(), 10);
  EXPECT_EQ(pool.idle(), 2);
  EXPECT_EQ(pool.match(Prefix{{1, 8}, {99, PrefixExtent::kOpen}}, 22).tokens, 8);
  // Nor is it where nothing was left of it.
  leave(pool, prefix, 22, 100);
  pool.take(10);
  pool.give(10);
  take_back(pool, prefix);
  EXPECT_EQ(pool.free(), 10);
  EXPECT_EQ(pool.idle(), 0);
}

TEST(KvPoolOwn, RoutersAndTiersDoNotHearOfIt) {
  KvPool pool = pool_of(10);
  PrefixHolders holders;
  KvTier below;
  below.reset(100);
  pool.report_to(holders, 3);
  pool.copy_down_to(below, false);
  Prefix prefix{{1, 8}};
  leave(pool, prefix, 22, 99);
  pool.take(10);
  EXPECT_EQ(below.blocks(1), 2);
  EXPECT_EQ(below.blocks(99), 0);
  pool.give(10);
  leave(pool, prefix, 22, 99);
  pool.lose_all();
  EXPECT_EQ(pool.free(), 10);
}

// Sequences come, make way and come back. Nobody finds more than it had, blocks are conserved, and whoever has more memory finds
// no less.
TEST(KvPoolOwn, MoreMemoryNeverFindsLess) {
  constexpr std::int64_t kSmaller = 40, kLarger = 48, kSequences = 6;
  KvPool smaller = pool_of(kSmaller), larger = pool_of(kLarger);
  struct Away {
    Prefix prefix;
    std::int64_t had = 0;
  };
  std::vector<Away> in_smaller(kSequences), in_larger(kSequences);
  double lost = 0, found = 0;
  for (std::uint64_t n = 0; n < 5'000; ++n) {
    const auto dice = [n](std::uint32_t lane, std::uint64_t sides) {
      return std::uint64_t(uniform(5, Stream::sampling, n, lane) * double(sides));
    };
    const std::size_t who = std::size_t(dice(0, kSequences));
    const std::int64_t tokens = 9 + std::int64_t(dice(1, 60));
    const auto come_and_go = [&](KvPool& pool, Away& away) {
      std::int64_t again = 0;
      if (!away.prefix.empty()) {
        again = pool.match(away.prefix, away.had).tokens;
        EXPECT_LE(again, away.had);
        take_back(pool, away.prefix);
      }
      away = {.prefix = {{1, 8}}, .had = tokens};
      leave(pool, away.prefix, tokens, mixed_seed(7, n));
      EXPECT_EQ(pool.free(), pool.total());
      EXPECT_EQ(pool.held_in_extents(), 0);
      return again;
    };
    const std::int64_t had = in_smaller[who].had;
    const std::int64_t with_less = come_and_go(smaller, in_smaller[who]);
    const std::int64_t with_more = come_and_go(larger, in_larger[who]);
    ASSERT_LE(with_less, with_more) << n;
    lost += double(had - with_less);
    found += double(with_less);
  }
  EXPECT_GT(lost, 10'000);
  EXPECT_GT(found, 10'000);
}

}  // namespace
}  // namespace engine
