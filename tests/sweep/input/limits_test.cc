#include "sweep/input/limits.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

std::string mistakes_in(std::string_view text) {
  const auto limits = parse_limits(text);
  return limits ? "" : engine::to_text(limits.mistakes());
}

TEST(InputLimits, NothingStatedMeansTheDefaults) {
  const InputLimits defaults;
  EXPECT_EQ(parse_limits("")->depth, defaults.depth);
  EXPECT_EQ(parse_limits("")->table_bytes, std::int64_t{2} << 30);
}

TEST(InputLimits, EachCanBeSetByItsName) {
  const InputLimits defaults;
  InputLimits::fields(defaults, [](std::string_view name, std::int64_t, std::string_view meaning) {
    EXPECT_FALSE(meaning.empty()) << name;
    const auto set = parse_limits(std::string(name) + "=7");
    ASSERT_TRUE(set.ok()) << name;
    InputLimits::fields(*set, [&](std::string_view other, std::int64_t value, std::string_view) {
      EXPECT_EQ(value == 7, other == name) << other;
    });
  });
}

TEST(InputLimits, SuffixesArePowersOf1024) {
  const auto limits = parse_limits("table_bytes=8G,spec_bytes=2M,line_bytes=3K,depth=200");
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->table_bytes, std::int64_t{8} << 30);
  EXPECT_EQ(limits->spec_bytes, 2 << 20);
  EXPECT_EQ(limits->line_bytes, 3 << 10);
  EXPECT_EQ(limits->depth, 200);
}

TEST(InputLimits, WhatIsNoLimitIsAMistake) {
  EXPECT_EQ(mistakes_in("depth=0"),
            "LLMSWEEP_LIMITS: error: 'depth=0' gives no whole number above zero\n"
            "  hint: write it as in 'table_bytes=8G,depth=200'\n");
  for (const char* wrong :
       {"depth", "depth=", "depth=-3", "depth=1.5", "depth=99999999999999999999",
        "depth=9223372036854775807G", "nothing=3", "=3", "depth=3 "}) {
    EXPECT_NE(mistakes_in(wrong), "") << wrong;
  }
}

TEST(InputLimits, AreShownAsAPersonWouldWriteThem) {
  EXPECT_EQ(limit_text(64 << 20), "64 MiB");
  EXPECT_EQ(limit_text(std::int64_t{4} << 30), "4 GiB");
  EXPECT_EQ(limit_text(1000), "1000");
}

}  // namespace
}  // namespace sweep
