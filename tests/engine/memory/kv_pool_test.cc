#include "engine/memory/kv_pool.h"

#include <gtest/gtest.h>

#include "engine/base/random.h"

namespace engine {
namespace {

using Prefix = std::vector<PrefixExtent>;

KvPool pool_of(std::int64_t blocks, std::int64_t size) {
  KvPool pool;
  pool.reset(blocks, size, true);
  return pool;
}

// A request computes its prefix and holds nothing else.
KvHolding compute(KvPool& pool, const Prefix& prefix) {
  KvHolding holding;
  const std::int64_t tokens = prefix.back().end;
  const KvPool::Match hit = pool.match(prefix, tokens);
  pool.hold(prefix, hit, holding);
  pool.take(pool.blocks_for(tokens) - holding.shared);
  pool.publish(prefix, tokens, holding);
  return holding;
}

struct Holder {
  const KvHolding* holding;
  std::int64_t blocks;
};

std::int64_t freed(const KvPool& pool, const std::vector<Holder>& holders) {
  std::vector<KvHolding::Part> gone;
  std::int64_t freed = 0;
  for (const Holder& one : holders) freed += pool.freed_by(*one.holding, one.blocks, gone);
  return freed;
}

TEST(KvPool, CountsBlocks) {
  KvPool pool;
  pool.reset(10, 16, false);
  EXPECT_EQ(pool.blocks_for(16), 1);
  EXPECT_EQ(pool.blocks_for(17), 2);
  pool.take(4);
  EXPECT_EQ(pool.free(), 6);
  pool.give(4);
  EXPECT_EQ(pool.used(), 0);
  pool.reset(10, 12, false);
  EXPECT_EQ(pool.blocks_for(24), 2);
  EXPECT_EQ(pool.blocks_for(25), 3);
}

TEST(KvPool, WhatOneLeavesAnotherFinds) {
  KvPool pool = pool_of(10, 4);
  const Prefix prefix{{1, 8}, {2, 12}};
  KvHolding first = compute(pool, prefix);
  EXPECT_EQ(pool.free(), 7);
  pool.release(first, 3);
  EXPECT_EQ(pool.free(), 10);
  EXPECT_EQ(pool.idle(), 3);
  const Prefix longer{{1, 8}, {2, 12}, {3, 16}};
  EXPECT_EQ(pool.match(longer, 15).tokens, 12);
  EXPECT_EQ(pool.match(longer, 15).idle, 3);
  // At most what is asked for, in whole blocks.
  EXPECT_EQ(pool.match(longer, 11).tokens, 8);
  const Prefix different{{1, 8}, {9, 12}};
  EXPECT_EQ(pool.match(different, 15).tokens, 8);
}

// An extent may go on beyond what a request reads, where that is to be its answer. What is there of it is not what it reads.
TEST(KvPool, NothingIsFoundBeyondWhatIsRead) {
  for (const std::int64_t state : {0, 1}) {
    KvPool pool = pool_of(20, 4);
    if (state > 0) pool.keep_states(state);
    const Prefix turn{{1, 4}, {2, 22}};  // a prompt of 10 tokens and its answer
    KvHolding before = compute(pool, turn);
    pool.release(before, 6);
    const KvPool::Match again = pool.match(turn, 9);
    EXPECT_LE(again.blocks, 2);
    EXPECT_LE(again.tokens, 8);
    EXPECT_FALSE(again.whole && again.extents == 2);
    // The last token's block may be shared, although that token is always read.
    EXPECT_LE(pool.match(turn, 11).blocks, 3);
    if (state > 0) continue;
    EXPECT_EQ(again.blocks, 2);
    EXPECT_EQ(pool.match(turn, 11).blocks, 3);
    EXPECT_EQ(pool.match(turn, 11).tokens, 8);
    // It makes its answer again, and shares what others have of it no more than what it has computed.
    KvHolding now;
    pool.hold(turn, again, now);
    EXPECT_EQ(now.shared, 2);
    pool.take(4);
    pool.publish(turn, 22, now);
    pool.release(now, 6);
    EXPECT_EQ(pool.free(), 20);
    EXPECT_EQ(pool.match(turn, 30).tokens, 20);
  }
}

TEST(KvPool, SharedBlocksAreHeldOnce) {
  KvPool pool = pool_of(10, 4);
  const Prefix prefix{{1, 8}};
  KvHolding first = compute(pool, prefix);
  KvHolding second = compute(pool, prefix);
  EXPECT_EQ(pool.used(), 2);
  EXPECT_EQ(freed(pool, {{&first, 2}}), 0);
  pool.release(first, 2);
  EXPECT_EQ(freed(pool, {{&second, 2}}), 2);
  EXPECT_EQ(pool.used(), 2);
  pool.release(second, 2);
  EXPECT_EQ(pool.used(), 0);
}

// What several share comes free with the last of them, whoever else holds a part of it.
TEST(KvPool, ThoseThatLeaveTogetherFreeWhatTheyShare) {
  std::int64_t shared = 0;
  for (std::uint64_t round = 0; round < 300; ++round) {
    std::uint32_t lane = 0;
    const auto die = [&](double sides) {
      return std::int64_t(uniform(9, Stream::sampling, round, lane++) * sides);
    };
    KvPool pool = pool_of(200, 4);
    std::vector<KvHolding> holdings;
    std::vector<std::int64_t> blocks;
    for (int i = 0; i < 8; ++i) {
      const std::int64_t key = 1 + die(2), common = die(30), all = common + 1 + die(20);
      holdings.push_back(
          compute(pool, {{std::uint64_t(key), common}, {std::uint64_t(10 * key + die(2)), all}}));
      blocks.push_back(pool.blocks_for(all));
    }
    std::vector<Holder> leaving;
    for (auto i = std::size_t(die(8)); i < 8; ++i) leaving.push_back({&holdings[i], blocks[i]});
    std::int64_t one_by_one = 0;
    for (const Holder& one : leaving) one_by_one += freed(pool, {one});
    const std::int64_t together = freed(pool, leaving), before = pool.free();
    EXPECT_GE(together, one_by_one);
    if (together > one_by_one) ++shared;
    for (std::size_t i = 8 - leaving.size(); i < 8; ++i) pool.release(holdings[i], blocks[i]);
    EXPECT_EQ(pool.free() - before, together);
  }
  EXPECT_GT(shared, 100);
}

TEST(KvPool, TheLeastRecentlyUsedGoesFirstFromItsEnd) {
  KvPool pool = pool_of(6, 4);
  KvHolding a = compute(pool, {{1, 12}});
  KvHolding b = compute(pool, {{2, 12}});
  pool.release(a, 3);
  pool.release(b, 3);
  pool.take(2);  // nothing is empty: two blocks of the older one go
  EXPECT_EQ(pool.match(Prefix{{1, 12}}, 100).tokens, 4);
  EXPECT_EQ(pool.match(Prefix{{2, 12}}, 100).tokens, 12);
  pool.take(1);
  EXPECT_EQ(pool.match(Prefix{{1, 12}}, 100).tokens, 0);
  EXPECT_EQ(pool.evicted(), 3);
  pool.give(3);
}

TEST(KvPool, APartThatWasGivenUpIsMadeWholeAgain) {
  KvPool pool = pool_of(6, 4);
  KvHolding a = compute(pool, {{1, 12}});
  pool.release(a, 3);
  pool.take(5);  // two blocks of it go
  pool.give(5);
  KvHolding again = compute(pool, {{1, 12}});
  EXPECT_EQ(again.shared, 3);
  EXPECT_EQ(pool.match(Prefix{{1, 12}}, 100).tokens, 12);
  pool.release(again, 3);
  EXPECT_EQ(pool.free(), 6);
}

TEST(KvPool, ShortExtentsAddUpToBlocks) {
  // Parts of 6 tokens in blocks of 4: 1, 2 and 1 blocks are full after them.
  KvPool pool = pool_of(10, 4);
  KvHolding a = compute(pool, {{1, 6}, {2, 12}, {3, 18}});
  EXPECT_EQ(a.shared, 4);
  EXPECT_EQ(pool.used(), 5);
  pool.release(a, 5);
  EXPECT_EQ(pool.match(Prefix{{1, 6}, {2, 12}, {3, 18}}, 100).tokens, 16);
  EXPECT_EQ(pool.match(Prefix{{1, 6}}, 100).tokens, 4);
}

TEST(KvPool, PromptsOfAnyLengthShareTheCommonPart) {
  KvPool pool = pool_of(20, 4);
  // One follows the shared stretch for 8 tokens, one for 16: either finds what the other has of it.
  KvHolding first = compute(pool, {{1, 8}});
  EXPECT_EQ(pool.match(Prefix{{1, 16}}, 100).tokens, 8);
  EXPECT_FALSE(pool.match(Prefix{{1, 16}}, 100).whole);
  KvHolding second = compute(pool, {{1, 16}});
  EXPECT_EQ(pool.used(), 4);
  EXPECT_EQ(pool.match(Prefix{{1, 16}}, 100).tokens, 16);
  EXPECT_EQ(pool.match(Prefix{{1, 11}}, 100).tokens, 8);
  EXPECT_TRUE(pool.match(Prefix{{1, 11}}, 100).whole);
  // What only the longer one holds comes free with it.
  EXPECT_EQ(freed(pool, {{&first, 2}}), 0);
  EXPECT_EQ(freed(pool, {{&second, 4}}), 2);
  pool.release(second, 4);
  EXPECT_EQ(pool.used(), 2);
  EXPECT_EQ(pool.idle(), 2);
  // The end of it goes where blocks run out, not what is held.
  pool.take(17);
  EXPECT_EQ(pool.match(Prefix{{1, 16}}, 100).tokens, 12);
  pool.take(1);
  EXPECT_EQ(pool.free(), 0);
  EXPECT_EQ(pool.match(Prefix{{1, 16}}, 100).tokens, 8);
  pool.give(18);
  pool.release(first, 2);
  EXPECT_EQ(pool.free(), 20);
}

TEST(KvPool, WhatTwoComputedAtOnceIsKeptOnce) {
  KvPool pool = pool_of(20, 4);
  // Both begin before either has anything to share; the longer one is done last.
  KvHolding first, second;
  pool.take(2);
  pool.take(4);
  pool.publish(Prefix{{1, 8}}, 8, first);
  pool.publish(Prefix{{1, 16}}, 16, second);
  EXPECT_EQ(first.shared, 2);
  EXPECT_EQ(second.shared, 4);
  EXPECT_EQ(pool.used(), 4);
  pool.release(first, 2);
  pool.release(second, 4);
  EXPECT_EQ(pool.free(), 20);
  EXPECT_EQ(pool.idle(), 4);
}

TEST(KvPool, BlocksAreConservedUnderAnyUse) {
  KvPool pool = pool_of(64, 4);
  struct Held {
    KvHolding holding;
    std::int64_t blocks;
  };
  std::vector<Held> held;
  for (std::uint64_t n = 0; n < 20'000; ++n) {
    const auto dice = [n](std::uint32_t lane, std::uint64_t sides) {
      return std::uint64_t(uniform(3, Stream::sampling, n, lane) * double(sides));
    };
    if (dice(0, 2) == 0 && !held.empty()) {
      const std::size_t i = std::size_t(dice(1, held.size()));
      pool.release(held[i].holding, held[i].blocks);
      held[i] = std::move(held.back());
      held.pop_back();
      continue;
    }
    Prefix prefix;
    std::uint64_t chain = 0;
    for (std::uint64_t part = 0; part <= dice(2, 4); ++part) {
      chain = mixed_seed(chain, dice(3 + std::uint32_t(part), 3));
      prefix.push_back({chain, std::int64_t(7 * (part + 1))});
    }
    // The last stretch is followed for any length.
    prefix.back().end -= std::int64_t(dice(9, 7));
    const std::int64_t tokens = prefix.back().end;
    const KvPool::Match hit = pool.match(prefix, tokens - 1);
    const std::int64_t blocks = std::max(pool.blocks_for(tokens), hit.blocks);
    if (blocks - hit.blocks + hit.idle > pool.free()) continue;
    Held mine{{}, blocks};
    pool.hold(prefix, hit, mine.holding);
    pool.take(blocks - mine.holding.shared);
    pool.publish(prefix, tokens, mine.holding);
    held.push_back(std::move(mine));
    std::int64_t alone = 0;
    for (const Held& one : held) alone += one.blocks - one.holding.shared;
    ASSERT_EQ(alone + pool.held_in_extents(), pool.used()) << n;
  }
  for (Held& one : held) pool.release(one.holding, one.blocks);
  EXPECT_EQ(pool.free(), 64);
}

}  // namespace
}  // namespace engine
