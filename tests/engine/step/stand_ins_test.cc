#include "engine/step/stand_ins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace engine {
namespace {

// Plain decoding; expected acceptances; and a pace that has part of a token left over.
constexpr Pace kPaces[] = {{}, {.tokens = 12, .steps = 5}, {.tokens = 7, .steps = 3, .carry = 2}};

struct Sums {
  double all = 0, by_stand_ins = 0;
  std::size_t timed = 0;
};

// `seconds` follows from the tokens that were made before a step.
template <class Seconds>
Sums sums_of(const Pace& pace, std::int64_t steps, Seconds&& seconds) {
  const auto at = [&](std::int64_t step) { return double(seconds(pace.made_by(step))); };
  Sums sums;
  for (std::int64_t i = 0; i < steps; ++i) sums.all += at(i);
  const std::vector<StandIn> list = stand_ins(pace, steps, at);
  for (const StandIn& one : list) sums.by_stand_ins += one.seconds * one.stands_for;
  sums.timed = list.size();
  return sums;
}

TEST(StandIns, StandForEveryStepOnce) {
  for (const Pace& pace : kPaces) {
    for (std::int64_t steps = 1; steps <= 400; ++steps) {
      const Sums sums = sums_of(pace, steps, [](std::int64_t) { return 1; });
      EXPECT_NEAR(sums.by_stand_ins, double(steps), 1e-9 * double(steps));
      EXPECT_LE(sums.timed, std::size_t(steps));
    }
  }
}

TEST(StandIns, AreAskedForOnce) {
  std::set<std::int64_t> asked;
  const auto stairs = [&](std::int64_t step) {
    EXPECT_TRUE(asked.insert(step).second) << step;
    return 1 + std::floor(double(step) / 64);
  };
  for (const StandIn& one : stand_ins({}, 3000, stairs)) {
    EXPECT_TRUE(asked.contains(one.step));
  }
}

TEST(StandIns, FewStandForManyWhereTimeIsAParabola) {
  for (const Pace& pace : kPaces) {
    const Sums sums = sums_of(pace, 100'000, [](std::int64_t made) {
      return 3 + 1e-3 * double(made) + 1e-9 * double(made) * double(made);
    });
    EXPECT_NEAR(sums.by_stand_ins / sums.all, 1, 1e-10);
    EXPECT_LE(sums.timed, 6U);
  }
}

// A sliding window that fills up, memory that gets faster with more bytes in flight, a host that the device catches up with.
TEST(StandIns, KinksAndCurvesAreFollowed) {
  const auto curve = [](std::int64_t made) {
    const double context = 100 + double(made);
    const double device =
        2e-3 + std::min(context, 4096.0) * 1e-6 + context * context / (context + 700) * 2e-7;
    return std::max(device, 3.1e-3);
  };
  for (const Pace& pace : kPaces) {
    for (const std::int64_t steps : {9, 30, 100, 1000, 30'000}) {
      const Sums sums = sums_of(pace, steps, curve);
      EXPECT_NEAR(sums.by_stand_ins / sums.all, 1, kStandInTolerance) << steps;
      if (steps > 1000) {
        EXPECT_LE(sums.timed, 200U);
      }
    }
  }
}

// Kernels that read keys tile by tile take as long for a part of the last tile as for all of it.
TEST(StandIns, StairsAreFollowedWhateverTheirWidth) {
  for (const std::int64_t width : {16, 64, 128, 1000}) {
    for (const std::int64_t steps : {50, 700, 4096, 10'007}) {
      const Sums sums = sums_of({}, steps, [&](std::int64_t made) {
        return 10 + std::ceil(double(made + 1) / double(width));
      });
      EXPECT_NEAR(sums.by_stand_ins / sums.all, 1, kStandInTolerance) << width << " " << steps;
    }
  }
}

}  // namespace
}  // namespace engine
