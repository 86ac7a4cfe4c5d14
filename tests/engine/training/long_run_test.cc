#include "engine/training/run/long_run.h"

#include <gtest/gtest.h>

#include <cmath>

namespace engine {
namespace {

constexpr double kMinute = 60;

// Intervals that Daly's paper gives for checkpoints of five minutes and restarts of ten (Future Generation Computer Systems
// 22, 2006, figures 3 to 5), in minutes.
TEST(LongRun, BestIntervalsAreDalys) {
  struct Published {
    double between_failures, interval;
  };
  for (const auto& [between, interval] :
       {Published{24 * 60, 117}, Published{6 * 60, 57}, Published{15, 9.1}}) {
    const FailingRun run{.between_failures = Seconds{between * kMinute},
                         .checkpoint = Seconds{5 * kMinute},
                         .restart = Seconds{10 * kMinute}};
    EXPECT_NEAR(best_interval(run).value / kMinute / interval, 1, 0.01) << between;
  }
}

// No other interval loses less, as far as the series goes.
TEST(LongRun, NoOtherIntervalIsMuchBetter) {
  for (const double between : {15.0, 60.0, 1440.0}) {
    const FailingRun run{.between_failures = Seconds{between * kMinute},
                         .checkpoint = Seconds{5 * kMinute},
                         .restart = Seconds{10 * kMinute}};
    const Seconds best = best_interval(run);
    for (const double factor : {0.5, 0.8, 0.95, 1.05, 1.25, 2.0}) {
      EXPECT_LE(goodput(run, best * factor), goodput(run, best) * 1.0001) << between << factor;
    }
  }
}

// One device is as slow as it is on average; of two, the mean of the slower is known (lognormal times).
TEST(LongRun, MeansOfTheSlowest) {
  for (const double jitter : {0.01, 0.1, 0.5, 1.0}) {
    EXPECT_NEAR(mean_slowest_factor(jitter, 1), 1, 1e-6) << jitter;
    const double deviation = std::sqrt(std::log1p(jitter * jitter));
    EXPECT_NEAR(mean_slowest_factor(jitter, 2), 1 + std::erf(deviation / 2), 1e-6) << jitter;
    EXPECT_GT(mean_slowest_factor(jitter, 1000), slowest_factor(jitter, 1000, 0.5)) << jitter;
  }
  EXPECT_EQ(mean_slowest_factor(0, 1000), 1);
}

}  // namespace
}  // namespace engine
