#include "results/mean_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/base/random.h"

namespace results {
namespace {

TEST(MeanInterval, KnowsStudentsTable) {
  EXPECT_NEAR(student_95(1), 12.7062, 1e-4);
  EXPECT_NEAR(student_95(2), 4.3027, 1e-4);
  EXPECT_NEAR(student_95(4), 2.7764, 1e-4);
  EXPECT_NEAR(student_95(9), 2.2622, 1e-4);
  EXPECT_NEAR(student_95(30), 2.0423, 1e-4);
  EXPECT_NEAR(student_95(120), 1.9799, 1e-4);
  EXPECT_NEAR(student_95(100'000), 1.9600, 1e-4);
}

TEST(MeanInterval, OfFiveNumbersByHand) {
  // Mean 3, standard deviation sqrt(2.5), standard error sqrt(0.5).
  const MeanInterval interval = mean_interval(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(interval.mean, 3);
  EXPECT_NEAR(interval.high - 3, 2.7764 * std::sqrt(0.5), 1e-4);
  EXPECT_NEAR(3 - interval.low, 2.7764 * std::sqrt(0.5), 1e-4);
}

TEST(MeanInterval, NeedsTwoValues) {
  EXPECT_TRUE(std::isnan(mean_interval({}).mean));
  const MeanInterval one = mean_interval(std::vector<double>{7});
  EXPECT_EQ(one.mean, 7);
  EXPECT_TRUE(std::isnan(one.low));
  EXPECT_TRUE(std::isnan(one.high));
  const MeanInterval same = mean_interval(std::vector<double>{7, 7, 7});
  EXPECT_EQ(same.low, 7);
  EXPECT_EQ(same.high, 7);
}

// Of many small samples, 95 in 100 intervals hold the true mean. The normal distribution's 1.96 in
// place of Student's factor would hold it in 88.
TEST(MeanInterval, HoldsTheTruthAsOftenAsItSays) {
  constexpr int kSamples = 20'000;
  constexpr double kTruth = 10;
  int held = 0;
  for (int sample = 0; sample < kSamples; ++sample) {
    std::vector<double> values;
    for (int i = 0; i < 5; ++i) {
      values.push_back(
          kTruth + 3 * engine::normal(5, engine::Stream::sampling, std::uint64_t(5 * sample + i)));
    }
    const MeanInterval interval = mean_interval(values);
    held += interval.low <= kTruth && kTruth <= interval.high ? 1 : 0;
  }
  // Three standard deviations of a share of 0.95.
  EXPECT_NEAR(double(held) / kSamples, 0.95, 3 * std::sqrt(0.95 * 0.05 / kSamples));
}

}  // namespace
}  // namespace results
