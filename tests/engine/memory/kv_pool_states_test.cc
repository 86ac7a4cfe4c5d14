// States of models with scans in the cache: where they are kept, what they make of a hit, and what becomes of them.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "engine/base/random.h"
#include "engine/memory/kv_pool.h"

namespace engine {
namespace {

using Prefix = std::vector<PrefixExtent>;

constexpr std::int64_t kState = 3;  // blocks

KvPool pool_of(std::int64_t blocks) {
  KvPool pool;
  pool.reset(blocks, 4, true);
  pool.keep_states(kState);
  return pool;
}

// A request computes its prefix and leaves; `tokens` of it, where that is less.
void compute(KvPool& pool, const Prefix& prefix, std::int64_t tokens = 0) {
  KvHolding holding;
  if (tokens == 0) tokens = prefix.back().end;
  pool.hold(prefix, pool.match(prefix, tokens - 1), holding);
  const std::int64_t blocks = std::max(pool.blocks_for(tokens), holding.shared);
  pool.take(blocks - holding.shared);
  pool.publish(prefix, tokens, holding);
  pool.release(holding, blocks);
}

std::int64_t found(const KvPool& pool, const Prefix& prefix) {
  return pool.match(prefix, prefix.back().end - 1).tokens;
}

TEST(KvPoolStates, AHitEndsWhereAStateWasKept) {
  KvPool pool = pool_of(40);
  compute(pool, {{1, 16}, {2, 32}});
  // The last token of a prompt is computed anew: the state is that of the boundary before it.
  EXPECT_EQ(found(pool, {{1, 16}, {2, 32}}), 28);
  EXPECT_EQ(found(pool, {{1, 16}, {2, 32}, {3, 48}}), 28);
  // Nobody ended or parted after 16 tokens: their KV is there, and no state.
  EXPECT_EQ(found(pool, {{1, 16}, {9, 32}}), 0);
  EXPECT_EQ(pool.match_without_state(Prefix{{1, 16}, {9, 32}}, 31).tokens, 16);
}

TEST(KvPoolStates, WhoPartsFromOthersLeavesAStateThere) {
  KvPool pool = pool_of(60);
  compute(pool, {{1, 17}, {2, 32}});
  compute(pool, {{1, 17}, {3, 32}});
  EXPECT_EQ(found(pool, {{1, 17}, {4, 32}}), 16);
  // What was kept before is still there.
  EXPECT_EQ(found(pool, {{1, 17}, {2, 32}}), 28);
}

TEST(KvPoolStates, AConversationKeepsItsLastState) {
  KvPool pool = pool_of(100);
  const Prefix turns{{1, 17}, {2, 33}, {3, 49}, {4, 65}};
  for (std::size_t turn = 1; turn <= turns.size(); ++turn) {
    const Prefix prompt(turns.begin(), turns.begin() + std::ptrdiff_t(turn));
    compute(pool, prompt);
    EXPECT_EQ(pool.idle(), prompt.back().end / 4 + kState) << turn;
    EXPECT_EQ(found(pool, prompt), prompt.back().end / 4 * 4);
  }
  // Somebody goes on from an earlier turn: nothing is found once, and then as much as there is.
  const Prefix other{{1, 17}, {2, 33}, {9, 49}};
  EXPECT_EQ(found(pool, other), 0);
  compute(pool, other);
  EXPECT_EQ(found(pool, Prefix{{1, 17}, {2, 33}, {8, 49}}), 32);
  EXPECT_EQ(found(pool, turns), 64);
}

TEST(KvPoolStates, AStateGoesBeforeTheBlocksOfItsExtent) {
  KvPool pool = pool_of(20);
  compute(pool, {{1, 33}});
  EXPECT_EQ(pool.idle(), 8 + kState);
  pool.take(20 - 8 - kState + 1);  // one more than is empty
  EXPECT_EQ(found(pool, {{1, 33}}), 0);
  EXPECT_EQ(pool.match_without_state(Prefix{{1, 33}}, 32).tokens, 32);
  EXPECT_EQ(pool.evicted(), kState);
  EXPECT_EQ(pool.free(), 20 - (20 - 8 - kState + 1));
  // Beside nine blocks of a request there is no room for a state in ten, and none is kept.
  compute(pool, {{2, 33}});
  EXPECT_EQ(found(pool, {{2, 33}}), 0);
  EXPECT_EQ(pool.match_without_state(Prefix{{2, 33}}, 32).tokens, 32);
}

// A prompt of whole blocks that were recorded one by one is found again, but for the block of its last token; nobody asks for less.
TEST(KvPoolStates, APromptOfWholeBlocksHasAStateBeforeItsLastOne) {
  KvPool pool = pool_of(40);
  compute(pool, {{1, 4}, {2, 8}, {3, 12}});
  EXPECT_EQ(found(pool, {{1, 4}, {2, 8}, {3, 12}}), 8);
  EXPECT_EQ(found(pool, {{1, 4}, {2, 8}, {3, 12}, {4, 16}}), 8);
  EXPECT_EQ(pool.idle(), 3 + kState);
  compute(pool, {{1, 4}, {2, 8}, {3, 12}});
  EXPECT_EQ(pool.idle(), 3 + kState);
}

// A system prompt, with questions of their own behind it that no extent names: the first to ask cannot know that others will part from it
// there, the second one finds its KV and no state, and the third goes on from the state that the second left.
TEST(KvPoolStates, TheSecondToPartLeavesTheState) {
  KvPool pool = pool_of(40);
  const Prefix system{{1, 18}};
  for (const std::int64_t expected : {0, 0, 16, 16}) {
    EXPECT_EQ(pool.match(system, 29).tokens, expected);
    KvHolding holding;
    pool.hold(system, pool.match(system, 29), holding);
    pool.take(8 - holding.shared);
    pool.publish(system, 30, holding, 30);
    pool.release(holding, 8);
  }
  EXPECT_EQ(pool.idle(), 4 + kState);
  // Where the question fills no whole block, the state before it is that of the prompt's end.
  KvPool other = pool_of(40);
  KvHolding holding;
  other.hold(system, {}, holding);
  other.take(5);
  other.publish(system, 20, holding, 20);
  other.release(holding, 5);
  EXPECT_EQ(other.match(system, 19).tokens, 16);
}

// A prompt that ends inside a block: as a trace lists it, with that block, or with less than a block after a system prompt.
TEST(KvPoolStates, APromptThatEndsInsideABlockHasAStateBeforeIt) {
  for (const Prefix& prompt : {Prefix{{1, 4}, {2, 8}, {3, 11}}, Prefix{{1, 9}, {2, 11}},
                               Prefix{{1, 8}, {2, 9}, {3, 10}}}) {
    KvPool pool = pool_of(40);
    compute(pool, prompt);
    EXPECT_EQ(found(pool, prompt), 8);
    Prefix longer = prompt;
    longer.back().key = 8;
    longer.push_back({9, 20});
    EXPECT_EQ(found(pool, longer), 8);
  }
}

// Where prompts part at the end of a block, there is all of it.
TEST(KvPoolStates, AStateWherePromptsPartStandsForAllBeforeIt) {
  KvPool pool = pool_of(60);
  compute(pool, {{1, 16}, {2, 32}});
  compute(pool, {{1, 16}, {3, 32}});
  EXPECT_EQ(found(pool, {{1, 16}, {4, 32}}), 16);
}

// What a tier below keeps of an extent comes back with its state; one state at a time.
TEST(KvPoolStates, ATierBringsBackTheStateOfTheLastPlace) {
  for (const bool at_once : {true, false}) {
    KvPool pool = pool_of(30);
    KvTier host;
    host.reset(1000, kState);
    pool.copy_down_to(host, at_once);
    const Prefix prompt{{1, 33}, {2, 65}};
    compute(pool, prompt);
    pool.take(30);  // everything is given up
    EXPECT_EQ(found(pool, prompt), 0);
    pool.give(30);
    const std::array<KvTier*, kTiers> tiers{nullptr, &host};
    KvPool::Below below;
    pool.look_below(prompt, 64, tiers, below);
    EXPECT_EQ(below.resume.tokens, 64) << at_once;
    EXPECT_EQ(below.resume.from, 1);
    EXPECT_EQ(below.from[1], 16);
    pool.restore(prompt, below);
    EXPECT_EQ(found(pool, prompt), 64);
    EXPECT_EQ(pool.idle(), 16 + kState);
    EXPECT_EQ(pool.free(), 30);
  }
}

TEST(KvPoolStates, ATierCountsItsStates) {
  KvTier tier, disk;
  tier.reset(10, kState);
  disk.reset(100, kState);
  tier.spill_to(&disk);
  tier.store(1, 7, {.at = 6});
  EXPECT_EQ(tier.state(1).at, 6);
  tier.store(2, 1);  // one block too many: the state goes, to the disk
  EXPECT_EQ(tier.state(1).at, 0);
  EXPECT_EQ(tier.blocks(1), 7);
  EXPECT_EQ(disk.state(1).at, 6);
  tier.store(3, 2);
  EXPECT_EQ(tier.blocks(1), 7);
  // A state beyond what there is of an extent is of no use.
  tier.store(4, 1, {.at = 2});
  EXPECT_EQ(tier.state(4).at, 0);
}

// Requests of random trees of prompts: states never find more than blocks alone, and everything comes free in the end.
TEST(KvPoolStates, NeverFindsMoreThanBlocksAndLosesNothing) {
  constexpr std::uint64_t seed = 17;
  std::uint64_t at = 0;
  const auto pick = [&](std::int64_t below) {
    return std::int64_t(uniform(seed, Stream::sessions, at++) * double(below));
  };
  for (const std::int64_t blocks : {30, 60, 200, 2000}) {
    KvPool pool = pool_of(blocks);
    KvTier host;
    host.reset(blocks, kState);
    pool.copy_down_to(host, blocks % 60 == 0);
    std::vector<std::pair<KvHolding, std::int64_t>> inside;
    double with = 0, without = 0;
    for (int i = 0; i < 3000; ++i) {
      Prefix prompt;
      std::uint64_t key = 7;
      std::int64_t end = 0;
      for (std::int64_t part = 0, parts = 1 + pick(4); part < parts; ++part) {
        key = key * 31 + std::uint64_t(1 + pick(3));
        end += 1 + std::int64_t(key % 23);
        prompt.push_back({key, end});
      }
      const KvPool::Match hit = pool.match(prompt, end - 1);
      EXPECT_LE(hit.tokens, pool.match_without_state(prompt, end - 1).tokens);
      with += double(hit.tokens);
      without += double(pool.match_without_state(prompt, end - 1).tokens);
      const std::int64_t needed = pool.blocks_for(end);
      if (std::max(needed, hit.blocks) - hit.blocks + hit.idle > pool.free() || inside.size() > 5) {
        if (inside.empty()) continue;
        pool.release(inside.front().first, inside.front().second);
        inside.erase(inside.begin());
        continue;
      }
      KvHolding holding;
      pool.hold(prompt, hit, holding);
      const std::int64_t taken = std::max(needed, holding.shared);
      pool.take(taken - holding.shared);
      pool.publish(prompt, end, holding);
      inside.emplace_back(holding, taken);
      EXPECT_GE(pool.idle(), 0);
      std::int64_t own = 0;
      for (const auto& [one, all] : inside) own += all - one.shared;
      EXPECT_EQ(own + pool.held_in_extents(), pool.used());
    }
    for (auto& [holding, taken] : inside) pool.release(holding, taken);
    EXPECT_EQ(pool.free(), blocks);
    EXPECT_LE(pool.idle(), blocks);
    if (blocks == 2000) {
      EXPECT_GT(with, 0.5 * without);
    }
  }
}

// A long stretch takes at once what its steps take one after the other. Who brings a state of its own, and shares the beginning of a
// prompt, makes the state at its end younger than the blocks before it.
TEST(KvPoolStates, BlocksAreGivenUpAsOneByOne) {
  std::uint64_t at = 0;
  const auto pick = [&](std::int64_t below) {
    return std::int64_t(uniform(23, Stream::sessions, at++) * double(below));
  };
  KvPool together = pool_of(60), singly = pool_of(60);
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t first = 1 + std::uint64_t(pick(6));
    const Prefix prompt{{first, 21}, {10 * first + std::uint64_t(pick(2)), 45}};
    const std::int64_t tokens = 1 + pick(45), more = pick(30);
    const bool has_state = pick(2) == 0;
    for (KvPool* const pool : {&together, &singly}) {
      KvHolding holding;
      pool->hold(
          prompt,
          has_state ? pool->match_without_state(prompt, tokens) : pool->match(prompt, tokens - 1),
          holding);
      const std::int64_t blocks = std::max(pool->blocks_for(tokens), holding.shared);
      pool->take(blocks - holding.shared);
      pool->publish(prompt, tokens, holding);
      pool->release(holding, blocks);
    }
    together.take(more);
    for (std::int64_t block = 0; block < more; ++block) singly.take(1);
    for (std::uint64_t key = 1; key <= 6; ++key) {
      for (const std::uint64_t last : {10 * key, 10 * key + 1}) {
        const Prefix other{{key, 21}, {last, 45}};
        ASSERT_EQ(together.match(other, 44).tokens, singly.match(other, 44).tokens) << i;
        ASSERT_EQ(together.match_without_state(other, 44).tokens,
                  singly.match_without_state(other, 44).tokens)
            << i;
      }
    }
    ASSERT_EQ(together.evicted(), singly.evicted()) << i;
    for (KvPool* const pool : {&together, &singly}) pool->give(more);
  }
  EXPECT_GT(together.evicted(), 1000);
}

}  // namespace
}  // namespace engine
