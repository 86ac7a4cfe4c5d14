#include "engine/step/interval.h"

#include <gtest/gtest.h>

namespace engine {
namespace {

KernelRow row(Family family, double low, double time, double high, Phase phase = Phase::decode) {
  KernelRow made;
  made.phase = phase;
  made.family = family;
  made.work.low = Seconds{low};
  made.work.time = Seconds{time};
  made.work.high = Seconds{high};
  return made;
}

TEST(Interval, KernelsOfOneFamilyAreOffTogether) {
  const Interval both = interval_of({row(Family::gemm, 9, 10, 12), row(Family::gemm, 18, 20, 24)});
  EXPECT_DOUBLE_EQ(both.low.value, 27);
  EXPECT_DOUBLE_EQ(both.high.value, 36);
}

TEST(Interval, FamiliesAreOffIndependently) {
  const Interval both =
      interval_of({row(Family::gemm, 7, 10, 16), row(Family::attn_decode, 6, 10, 18)});
  EXPECT_DOUBLE_EQ(both.low.value, 20 - 5);
  EXPECT_DOUBLE_EQ(both.high.value, 20 + 10);
}

TEST(Interval, OnePhaseOnly) {
  const Interval first = interval_of(
      {row(Family::gemm, 9, 10, 12, Phase::prefill), row(Family::gemm, 1, 2, 3)}, Phase::prefill);
  EXPECT_DOUBLE_EQ(first.low.value, 9);
  EXPECT_DOUBLE_EQ(first.high.value, 12);
}

TEST(Interval, NothingTakesNoTime) {
  EXPECT_EQ(interval_of({}).high, Seconds{0});
  EXPECT_EQ(interval_of({}).low, Seconds{0});
}

}  // namespace
}  // namespace engine
