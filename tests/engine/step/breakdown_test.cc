#include "engine/step/breakdown.h"

#include <gtest/gtest.h>

#include <utility>

namespace engine {
namespace {

KernelRow row(OpName op, Family family, double seconds) {
  return {.op = op,
          .family = family,
          .tier = Tier::measured,
          .work = {.calls = 2, .time = Seconds{seconds}, .energy = Joules{3 * seconds}}};
}

TEST(Work, EveryMemberAddsUp) {
  Work one{.calls = 1,
           .time = Seconds{2},
           .hidden = Seconds{3},
           .low = Seconds{4},
           .high = Seconds{5},
           .flops = Flops{6},
           .bytes = Bytes{7},
           .energy = Joules{8}};
  one.saved[Bound::memory] = Seconds{9};
  Work sum = one;
  sum.add(one, 2);
  EXPECT_EQ(sum, (Work{.calls = 3,
                       .time = Seconds{6},
                       .hidden = Seconds{9},
                       .low = Seconds{12},
                       .high = Seconds{15},
                       .flops = Flops{18},
                       .bytes = Bytes{21},
                       .energy = Joules{24},
                       .saved = sum.saved}));
  EXPECT_EQ(sum.saved[Bound::memory].value, 27);
  EXPECT_EQ(sum.saved[Bound::compute].value, 0);
}

TEST(Breakdown, RowsOfOnePhaseOpAndFamilyBecomeOne) {
  Breakdown sums;
  sums.add(row(OpName::sampling, Family::sample, 1));
  sums.add(row(OpName::sampling, Family::residual, 10));
  sums.add(row(OpName::sampling, Family::sample, 2), 3);
  sums.add(row(OpName::sampling, Family::sample, 1), Phase::mixed, 1);
  sums.add(row(OpName::sampling, Family::residual, 10), 0.5);
  ASSERT_EQ(sums.rows().size(), 3u);
  EXPECT_EQ(sums.rows()[0].work.time.value, 7);
  EXPECT_EQ(sums.rows()[0].work.calls, 8);
  EXPECT_EQ(sums.rows()[0].work.energy.value, 21);
  EXPECT_EQ(sums.rows()[1].family, Family::residual);
  EXPECT_EQ(sums.rows()[1].work.time.value, 15);
  EXPECT_EQ(sums.rows()[2].phase, Phase::mixed);
}

TEST(Breakdown, LabelsAreTheWeakestOrThoseOfTheGreatestContribution) {
  KernelRow small = row(OpName::mlp_reduce, Family::all_reduce, 1);
  small.algorithm = Algorithm::one_shot;
  small.tier = Tier::transfer;
  small.extrapolated = true;
  small.work.saved[Bound::launch] = Seconds{1};
  KernelRow large = row(OpName::mlp_reduce, Family::all_reduce, 5);
  large.algorithm = Algorithm::ring;
  large.work.saved[Bound::network] = Seconds{5};
  // In either order.
  for (const bool small_first : {true, false}) {
    Breakdown sums;
    sums.add(small_first ? small : large);
    sums.add(small_first ? large : small);
    const KernelRow sum = std::move(sums).take().front();
    EXPECT_EQ(sum.algorithm, Algorithm::ring);
    EXPECT_EQ(sum.bound, Bound::network);
    EXPECT_EQ(sum.tier, Tier::transfer);
    EXPECT_TRUE(sum.extrapolated);
  }
}

}  // namespace
}  // namespace engine
