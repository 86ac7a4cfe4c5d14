#include "sweep/input/mistake_list.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

MistakeList with(int count) {
  MistakeList list;
  for (int i = 1; i <= count; ++i) list.add({{"f", i, 1}, "wrong", ""});
  return list;
}

TEST(MistakeList, FiftyAreKeptAndTheRestCounted) {
  EXPECT_EQ(with(50).finish().size(), 50u);
  const auto mistakes = with(50'000).finish();
  ASSERT_EQ(mistakes.size(), 51u);
  EXPECT_EQ(engine::to_text({mistakes.back()}),
            "f: error: and 49950 more mistakes\n  hint: correct these first\n");
  EXPECT_EQ(with(51).finish().back().what, "and 1 more mistake");
  EXPECT_EQ(with(51).size(), 51u);
}

TEST(MistakeList, TheSameMistakeTwiceIsOne) {
  MistakeList list;
  list.add({{"f", 1, 1}, "wrong", ""});
  list.add({{"f", 1, 1}, "wrong", ""});
  EXPECT_EQ(list.size(), 1u);
}

TEST(MistakeList, AListAddedToAnotherKeepsItsCount) {
  MistakeList list;
  list.add(with(3000).finish());
  EXPECT_EQ(list.size(), 3000u);
  EXPECT_EQ(std::move(list).finish().back().what, "and 2950 more mistakes");
}

TEST(MistakeList, WhatIsQuotedMayBeLongButTheMessageIsNot) {
  MistakeList list;
  std::string euros;
  for (int i = 0; i < 100'000; ++i) euros += "\u20ac";
  list.add({{"f", 1, 1}, "x" + euros, euros});
  const auto mistakes = std::move(list).finish();
  EXPECT_LE(mistakes[0].what.size(), 2100u);
  EXPECT_TRUE(mistakes[0].what.ends_with("\u20ac... (shortened)"));
  EXPECT_TRUE(mistakes[0].hint.ends_with("\u20ac... (shortened)"));
}

}  // namespace
}  // namespace sweep
