// In which order free blocks are taken: the oldest first, whatever is in them. Engines keep every block in a queue; the pool,
// which counts, gives up the same ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "engine/base/random.h"
#include "engine/memory/kv_pool.h"

namespace engine {
namespace {

using Prefix = std::vector<PrefixExtent>;
constexpr std::int64_t kBlock = 4;

struct Running {
  Prefix prefix;
  KvHolding holding;
  std::int64_t blocks = 0;  // of its prefix and of its own
};

KvPool pool_of(std::int64_t blocks) {
  KvPool pool;
  pool.reset(blocks, kBlock, true);
  return pool;
}

std::int64_t whole_blocks(const Prefix& prefix) { return prefix.back().end / kBlock; }

// A request finds what it can, computes the rest of its prefix, and takes so many blocks more that nobody asks for again. Returns the
// blocks that it found.
std::int64_t begin(KvPool& pool, Running& one, std::int64_t own) {
  const KvPool::Match hit = pool.match(one.prefix, one.prefix.back().end);
  pool.hold(one.prefix, hit, one.holding);
  one.blocks = whole_blocks(one.prefix) + own;
  pool.take(one.blocks - one.holding.shared);
  pool.publish(one.prefix, one.prefix.back().end, one.holding);
  return hit.blocks;
}

void end(KvPool& pool, Running& one) { pool.release(one.holding, one.blocks); }

// Ten blocks. A has two that others may find and two of its own, B likewise. While both run, two are free.
TEST(KvPoolAge, AWorkedExample) {
  KvPool pool = pool_of(10);
  Running a{{{1, 8}}}, b{{{2, 8}}};
  begin(pool, a, 2);
  begin(pool, b, 2);
  end(pool, a);
  end(pool, b);
  // From the oldest on: the two that were never taken, A's own, A's prefix from its end, B's own, B's prefix.
  const auto found = [&](std::uint64_t key) { return pool.match(Prefix{{key, 8}}, 8).blocks; };
  EXPECT_EQ(pool.before_cache(), 4);
  pool.take(4);
  EXPECT_EQ(found(1), 2);
  pool.take(1);
  EXPECT_EQ(found(1), 1);
  pool.take(1);
  EXPECT_EQ(found(1), 0);
  EXPECT_EQ(found(2), 2);
  // B's own are taken before its prefix, and the six that come back now are younger than that.
  pool.give(6);
  EXPECT_EQ(pool.before_cache(), 2);
  pool.take(3);
  EXPECT_EQ(found(2), 1);
  pool.take(1);
  EXPECT_EQ(found(2), 0);
  EXPECT_EQ(pool.free(), 6);
  EXPECT_EQ(pool.evicted(), 4);
}

// What a request of a short prompt has used is younger than the rest of the extent.
TEST(KvPoolAge, PiecesOfAnExtentHaveAgesOfTheirOwn) {
  KvPool pool = pool_of(10);
  Running all{{{1, 24}}}, other{{{2, 8}}}, start{{{1, 8}}};
  begin(pool, all, 0);
  end(pool, all);
  begin(pool, other, 0);
  end(pool, other);
  EXPECT_EQ(begin(pool, start, 0), 2);
  end(pool, start);
  // Two were never taken; then the far end of the first extent, the second one, and its start.
  pool.take(6);
  EXPECT_EQ(pool.match(Prefix{{1, 24}}, 24).blocks, 2);
  EXPECT_EQ(pool.match(Prefix{{2, 8}}, 8).blocks, 2);
  pool.take(2);
  EXPECT_EQ(pool.match(Prefix{{1, 24}}, 24).blocks, 2);
  EXPECT_EQ(pool.match(Prefix{{2, 8}}, 8).blocks, 0);
}

// What was set aside and not used is taken before anything else.
TEST(KvPoolAge, WhatIsPutBackIsTakenNext) {
  KvPool pool = pool_of(6);
  Running a{{{1, 8}}};
  pool.take(4);
  begin(pool, a, 0);
  end(pool, a);
  pool.put_back(2);
  pool.take(2);
  EXPECT_EQ(pool.match(Prefix{{1, 8}}, 8).blocks, 2);
  pool.give(4);
  pool.take(2);
  EXPECT_EQ(pool.match(Prefix{{1, 8}}, 8).blocks, 0);
}

// Who comes back has the blocks that it left, and takes none of others for them.
TEST(KvPoolAge, WhoComesBackPushesNothingOut) {
  KvPool pool = pool_of(12);
  Running others{{{1, 16}}};
  begin(pool, others, 0);
  end(pool, others);
  Prefix prefix{{2, PrefixExtent::kOpen}};
  KvHolding holding;
  pool.take(8);
  pool.publish_all(prefix, 32, holding);
  pool.release(holding, 8);
  EXPECT_EQ(pool.free(), 12);
  pool.take_back(2);
  pool.take(8);
  EXPECT_EQ(pool.match(others.prefix, 16).blocks, 4);
}

// Cache that has grown too old loses its content, not its place in the queue.
TEST(KvPoolAge, WhatExpiresKeepsItsAge) {
  KvPool pool = pool_of(8);
  pool.keep_for(10);
  Running a{{{1, 8}}}, b{{{2, 8}}};
  pool.take(4);
  begin(pool, a, 0);
  begin(pool, b, 0);
  end(pool, a);
  pool.give(2);
  pool.pass(5);
  end(pool, b);
  pool.give(2);
  EXPECT_EQ(pool.next_to_expire(), 10);
  pool.pass(10);
  EXPECT_EQ(pool.next_to_expire(), 15);
  EXPECT_EQ(pool.match(a.prefix, 8).blocks, 0);
  EXPECT_EQ(pool.before_cache(), 4);
  pool.take(4);
  EXPECT_EQ(pool.match(b.prefix, 8).blocks, 2);
}

// Every block by itself, as engines keep them.
class BlockByBlock {
 public:
  explicit BlockByBlock(std::int64_t blocks) : names_(std::size_t(blocks)) {
    for (std::int64_t i = 0; i < blocks; ++i) free_.push_back(i);
  }
  using Name = std::pair<std::uint64_t, std::int64_t>;  // key of its extent, and its place there
  static std::vector<Name> names_of(const Prefix& prefix) {
    std::vector<Name> names;
    std::int64_t start = 0;
    for (const PrefixExtent& part : prefix) {
      const std::int64_t count = part.end / kBlock - start / kBlock;
      for (std::int64_t place = 0; place < count; ++place) names.emplace_back(part.key, place);
      start = part.end;
    }
    return names;
  }
  std::int64_t find(const Prefix& prefix) const {
    std::int64_t found = 0;
    for (const Name& name : names_of(prefix)) {
      if (!places_.contains(name)) break;
      ++found;
    }
    return found;
  }
  std::vector<std::int64_t> begin(const Prefix& prefix, std::int64_t own) {
    const std::vector<Name> names = names_of(prefix);
    const auto found = std::size_t(find(prefix));
    std::vector<std::int64_t> mine;
    for (std::size_t i = 0; i < found; ++i) {
      mine.push_back(places_.at(names[i]));
      if (users_[mine.back()]++ == 0) std::erase(free_, mine.back());
    }
    for (std::size_t i = found; i < names.size() + std::size_t(own); ++i) {
      const std::int64_t block = free_.front();
      free_.pop_front();
      if (names_[std::size_t(block)] != Name{}) places_.erase(names_[std::size_t(block)]);
      names_[std::size_t(block)] = i < names.size() ? names[i] : Name{};
      if (i < names.size()) places_[names[i]] = block;
      users_[block] = 1;
      mine.push_back(block);
    }
    return mine;
  }
  void end(const std::vector<std::int64_t>& mine) {
    for (std::size_t i = mine.size(); i-- > 0;) {
      if (--users_[mine[i]] == 0) free_.push_back(mine[i]);
    }
  }
  std::int64_t free() const { return std::int64_t(free_.size()); }

 private:
  std::deque<std::int64_t> free_;  // the oldest first
  std::vector<Name> names_;
  std::map<Name, std::int64_t> places_;
  std::map<std::int64_t, std::int64_t> users_;
};

class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t n) : seed_(seed), n_(n) {}
  std::int64_t operator()(std::int64_t sides) {
    return std::int64_t(uniform(seed_, Stream::sampling, n_, lane_++) * double(sides));
  }

 private:
  std::uint64_t seed_, n_;
  std::uint32_t lane_ = 0;
};

// Of a tree of prompts, the last part followed for any length where `any_length`.
Prefix random_prefix(Dice& dice, bool any_length) {
  Prefix prefix;
  std::uint64_t chain = 0;
  const std::int64_t parts = 1 + dice(4);
  for (std::int64_t part = 0; part < parts; ++part) {
    chain = mixed_seed(chain, std::uint64_t(1 + dice(3)));
    const std::int64_t length = kBlock * std::int64_t(1 + chain % 5);
    prefix.push_back({chain, (prefix.empty() ? 0 : prefix.back().end) + length});
  }
  const std::int64_t start = parts > 1 ? prefix[std::size_t(parts - 2)].end : 0;
  if (any_length) prefix.back().end = start + 1 + dice(prefix.back().end - start);
  return prefix;
}

TEST(KvPoolAge, CountedBlocksAreGivenUpAsOneByOne) {
  constexpr std::int64_t kBlocks = 90;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    KvPool pool = pool_of(kBlocks);
    BlockByBlock engine(kBlocks);
    std::vector<std::pair<Running, std::vector<std::int64_t>>> running;
    double asked = 0, found = 0;
    for (std::uint64_t n = 0; n < 1'500; ++n) {
      Dice dice(seed, n);
      Running one{random_prefix(dice, seed % 2 == 0)};
      const std::int64_t own = dice(10);
      const auto in_engine = engine.find(one.prefix);
      ASSERT_EQ(pool.match(one.prefix, one.prefix.back().end).blocks, in_engine)
          << seed << " " << n;
      while (engine.free() < whole_blocks(one.prefix) + own || (!running.empty() && dice(3) == 0)) {
        const auto i = std::size_t(dice(std::int64_t(running.size())));
        end(pool, running[i].first);
        engine.end(running[i].second);
        running.erase(running.begin() + std::ptrdiff_t(i));
        ASSERT_EQ(pool.free(), engine.free());
      }
      found += double(begin(pool, one, own));
      asked += double(whole_blocks(one.prefix));
      std::vector<std::int64_t> blocks = engine.begin(one.prefix, own);
      ASSERT_EQ(pool.free(), engine.free());
      running.emplace_back(std::move(one), std::move(blocks));
    }
    EXPECT_GT(found / asked, 0.3) << seed;
    EXPECT_LT(found / asked, 0.9) << seed;
  }
}

// One request after the other finds no more where it leaves more behind that nobody asks for, or where there is less memory: the
// cache is what was used last.
TEST(KvPoolAge, WhatNobodyAsksForAndLessMemoryNeverFindMore) {
  KvPool without = pool_of(60), with = pool_of(60), smaller = pool_of(45);
  double found = 0, found_with = 0, found_smaller = 0;
  for (std::uint64_t n = 0; n < 20'000; ++n) {
    Dice dice(3, n);
    const Prefix prefix = random_prefix(dice, true);
    const std::int64_t own = dice(12);
    const auto come_and_go = [&](KvPool& pool, std::int64_t left) {
      Running one{prefix};
      const std::int64_t hit = begin(pool, one, left);
      end(pool, one);
      EXPECT_EQ(pool.free(), pool.total());
      return hit;
    };
    const std::int64_t hit = come_and_go(without, 0), hit_with = come_and_go(with, own),
                       hit_smaller = come_and_go(smaller, 0);
    ASSERT_LE(hit_with, hit) << n;
    ASSERT_LE(hit_smaller, hit) << n;
    found += double(hit);
    found_with += double(hit_with);
    found_smaller += double(hit_smaller);
  }
  EXPECT_LT(found_with, 0.9 * found);
  EXPECT_LT(found_smaller, 0.95 * found);
}

}  // namespace
}  // namespace engine
