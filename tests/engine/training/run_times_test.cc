// How long runs take that fail by chance.
#include "engine/training/run/run_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/random.h"

namespace engine {
namespace {

// Failures hardly ever come while another one's work is done again.
constexpr Seconds kWork{1e9};

// A run with so many failures to expect, checkpoints every 1,000 s.
RunTimes with(double failures, Seconds restart = Seconds{300}) {
  const Seconds free = kWork * 1.01;
  return times_of(
      {.between_failures = free / failures, .checkpoint = Seconds{10}, .restart = restart},
      Seconds{1000}, kWork);
}

TEST(RunTimes, MeanIsWorkOverGoodput) {
  for (const double failures : {1e-3, 0.5, 10.0, 45.0, 200.0}) {
    const FailingRun run{
        .between_failures = kWork / failures, .checkpoint = Seconds{10}, .restart = Seconds{300}};
    const Seconds mean = times_of(run, Seconds{1000}, kWork).mean();
    EXPECT_NEAR(mean.value * goodput(run, Seconds{1000}) / kWork.value, 1, 1e-12) << failures;
  }
}

// A run without failures takes its failure-free time, and is as likely as a Poisson count of none.
TEST(RunTimes, NoneEndsBeforeTheFailureFreeTime) {
  for (const double failures : {1e-9, 1e-3, 0.5, 3.0, 29.0, 31.0, 59.0, 61.0, 1000.0}) {
    const RunTimes times = with(failures);
    EXPECT_EQ(times.probability_within(times.failure_free * (1 - 1e-12)), 0) << failures;
    EXPECT_GE(times.quantile(0.01), times.failure_free) << failures;
    const double none = times.probability_within(times.failure_free);
    EXPECT_NEAR(none, std::exp(-failures), 1e-6) << failures;
    if (none >= 0.95) {
      EXPECT_EQ(times.quantile(0.95), times.failure_free) << failures;
    }
  }
}

TEST(RunTimes, LongerDeadlinesAreLikelierAndQuantilesAreTheirInverse) {
  for (const double jitter : {0.0, 5.0, 3000.0}) {
    for (const double failures : {1e-3, 0.5, 3.0, 12.0, 35.0, 100.0}) {
      RunTimes times = with(failures);
      times.jitter = Seconds{jitter};
      double before = 0;
      for (int i = -40; i <= 80; ++i) {
        const Seconds limit = times.mean() + times.deviation() * (0.1 * i);
        const double now = times.probability_within(limit);
        EXPECT_GE(now, before - 1e-12) << failures << " " << jitter << " " << i;
        before = now;
      }
      EXPECT_GT(before, 0.97);
      for (const double share : {0.5, 0.95, 0.99}) {
        const Seconds at = times.quantile(share);
        EXPECT_GE(times.probability_within(at), share - 1e-9) << failures << " " << jitter;
        EXPECT_LE(times.probability_within(at - Seconds{0.01}), share + 1e-9) << failures;
      }
    }
  }
}

// Neither where the normal distribution begins to take over, nor where it has, nor where jitter vanishes.
TEST(RunTimes, NothingJumps) {
  for (const double failures : {30.0, 60.0}) {
    const RunTimes less = with(failures * (1 - 1e-6)), more = with(failures * (1 + 1e-6));
    const Seconds apart = more.quantile(0.95) - less.quantile(0.95);
    EXPECT_LT(std::abs(apart / less.deviation()), 1e-4);
    const Seconds limit = less.mean() + less.deviation() * 0.7;
    EXPECT_NEAR(less.probability_within(limit), more.probability_within(limit), 1e-4);
  }
  RunTimes times = with(2);
  const Seconds limit = times.mean() + times.deviation();
  const double smooth = times.probability_within(limit);
  times.jitter = Seconds{1e-3};
  EXPECT_NEAR(times.probability_within(limit), smooth, 1e-6);
}

// The same runs, failure by failure: each takes a restart and an even share of what is since the last checkpoint.
TEST(RunTimes, AgreeWithRunsThatAreDrawn) {
  for (const double failures : {0.3, 2.0, 8.0, 40.0, 90.0}) {
    const RunTimes times = with(failures);
    constexpr std::uint64_t runs = 20'000;
    std::vector<double> drawn;
    std::uint64_t next = 0;
    for (std::uint64_t run = 0; run < runs; ++run) {
      double took = times.failure_free.value;
      double at = exponential(1, Stream::sampling, next++);
      for (; at < failures; at += exponential(1, Stream::sampling, next++)) {
        took += 300 + 1010 * uniform(2, Stream::sampling, next++);
      }
      drawn.push_back(took);
    }
    std::sort(drawn.begin(), drawn.end());
    for (const double share : {0.1, 0.5, 0.9, 0.95, 0.99}) {
      const double seen = drawn[std::size_t(share * double(runs))];
      // The normal distribution of many delays is not skewed, as their sum still is.
      EXPECT_NEAR(times.quantile(share).value, seen, 0.12 * times.deviation().value)
          << failures << " at " << share;
    }
  }
}

}  // namespace
}  // namespace engine
