// Uses of what a tier has that are told later than others that came after them.
#include "engine/memory/kv_tier.h"

#include <gtest/gtest.h>

#include <vector>

namespace engine {
namespace {

// The order in which three extents are given up.
std::vector<std::uint64_t> given_up_in_order(KvTier& tier) {
  std::vector<std::uint64_t> order;
  std::vector<std::uint64_t> left{1, 2, 3};
  tier.pass({50, -1});
  for (std::uint64_t more = 100; more < 110; ++more) {
    tier.store(more, 1);
    std::erase_if(left, [&](std::uint64_t key) {
      if (tier.blocks(key) > 0) return false;
      order.push_back(key);
      return true;
    });
  }
  return order;
}

KvTier with_three() {
  KvTier tier;
  tier.reset(3);
  for (const std::int64_t moment : {10, 20, 30}) {
    tier.pass({moment, -1});
    tier.store(std::uint64_t(moment / 10), 1);
  }
  return tier;
}

void use_then(KvTier& tier, UseMoment then, std::uint64_t key) {
  const UseMoment now = tier.set_moment(then);
  tier.store(key, 1);
  tier.set_moment(now);
}

TEST(KvTier, AUseThatIsToldLateCountsFromWhenItWas) {
  struct Case {
    UseMoment then;
    std::vector<std::uint64_t> order;
  };
  const Case cases[] = {{{5, 0}, {1, 2, 3}},   // it was used after that already
                        {{15, 0}, {1, 2, 3}},  // still before the second
                        {{25, 0}, {2, 1, 3}},
                        {{35, 0}, {2, 3, 1}}};
  for (const Case& one : cases) {
    KvTier tier = with_three();
    use_then(tier, one.then, 1);
    EXPECT_EQ(given_up_in_order(tier), one.order) << one.then.moment;
  }
}

TEST(KvTier, WhatIsUnderWayIsNotGivenUp) {
  KvTier tier, disk;
  tier.reset(4);
  disk.reset(100);
  tier.spill_to(&disk);
  tier.store(1, 2);
  const std::int32_t place = tier.begin_load(1);
  EXPECT_EQ(tier.begin_load(7), -1);
  tier.store(2, 3);
  EXPECT_EQ(tier.blocks(1), 2);
  EXPECT_EQ(tier.blocks(2), 2);
  tier.store(3, 4);  // no room at all beside the load but for two
  EXPECT_EQ(tier.blocks(1), 2);
  EXPECT_EQ(tier.blocks(2), 0);
  EXPECT_EQ(tier.blocks(3), 2);
  EXPECT_EQ(disk.blocks(3), 4);
  tier.end_load(place);
  EXPECT_EQ(tier.blocks(1), 2);
  tier.store(4, 4);
  EXPECT_EQ(tier.blocks(1), 0);
  EXPECT_EQ(disk.blocks(1), 2);
}

TEST(KvTier, AtOneMomentRanksDecide) {
  for (const std::int32_t rank : {1, 3}) {
    KvTier tier = with_three();
    tier.pass({40, 2});
    tier.touch(2);
    use_then(tier, {40, rank}, 1);
    const std::vector<std::uint64_t> after{3, 2, 1}, before{3, 1, 2};
    EXPECT_EQ(given_up_in_order(tier), rank > 2 ? after : before);
  }
}

// The first was used last, and the second is given up.
TEST(KvTier, NothingIsGivenUpBeforeAllHaveToldThatTheyUsedIt) {
  KvTier tier = with_three();
  const std::int32_t place = tier.expect_uses(1, 1);
  ASSERT_GE(place, 0);
  EXPECT_TRUE(tier.has_at(place, 1, 1));
  EXPECT_EQ(tier.expect_uses(1, 2), -1);  // it has no second block
  EXPECT_EQ(tier.expect_uses(7, 1), -1);
  int asked = 0;
  tier.ask_for_uses([&] {
    ++asked;
    use_then(tier, {35, 0}, 1);
    tier.expect_no_more(place);
  });
  tier.pass({40, -1});
  tier.store(4, 1);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(tier.blocks(1), 1);
  EXPECT_EQ(tier.blocks(2), 0);
  tier.store(5, 1);
  tier.store(6, 1);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(tier.blocks(1), 0);
}

}  // namespace
}  // namespace engine
