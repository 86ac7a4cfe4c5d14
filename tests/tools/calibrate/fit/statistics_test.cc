#include <gtest/gtest.h>

#include <cmath>

#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/fit/minimise.h"
#include "tools/calibrate/tables/quantile.h"

namespace tools {
namespace {

TEST(ErrorSummary, StatesTheFiguresOneCanWorkOutByHand) {
  const std::vector<Scored> rows = {
      {.measured = 1, .predicted = 1.1, .lo = 0.9, .hi = 1.2},
      {.measured = 2, .predicted = 1.6, .lo = 1.5, .hi = 1.8},
      {.measured = 4, .predicted = 4, .lo = 3, .hi = 5},
  };
  const ErrorSummary summary = error_summary(rows);
  EXPECT_EQ(summary.rows, 3);
  EXPECT_NEAR(summary.mean, 0.1, 1e-12);
  EXPECT_NEAR(summary.median, 0.1, 1e-12);
  EXPECT_NEAR(summary.p90, 0.18, 1e-12);
  EXPECT_NEAR(summary.bias, -0.1 / 3, 1e-12);
  EXPECT_NEAR(summary.coverage, 2.0 / 3, 1e-12);
  EXPECT_NEAR(summary.rank_correlation, 1, 1e-12);
}

TEST(RankCorrelation, IsMinusOneInReverseAndSharesRanksOfTies) {
  const std::vector<double> up = {1, 2, 3, 4}, down = {9, 7, 5, 1}, tied = {1, 1, 2, 2};
  EXPECT_NEAR(rank_correlation(up, down), -1, 1e-12);
  EXPECT_NEAR(rank_correlation(up, tied), 2 / std::sqrt(5), 1e-12);
}

TEST(Quantile, InterpolatesBetweenNeighbours) {
  std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
}

TEST(Minimise, FindsTheBottomOfABentValley) {
  const auto valley = [](std::span<const double> x) {
    return std::pow(1 - x[0], 2) + 100 * std::pow(x[1] - x[0] * x[0], 2);
  };
  const std::vector<Unknown> unknowns = {{"x", 0.2, 0.01, 10}, {"y", 5, 0.01, 10}};
  const Minimum minimum = minimise(valley, unknowns, {.evaluations = 4000});
  EXPECT_NEAR(minimum.point[0], 1, 1e-3);
  EXPECT_NEAR(minimum.point[1], 1, 1e-3);
}

TEST(Minimise, StaysInsideTheBounds) {
  const auto slope = [](std::span<const double> x) { return x[0] + x[1]; };
  const std::vector<Unknown> unknowns = {{"a", 0.5, 0.1, 1}, {"b", 0, -1, 1}};
  const Minimum minimum = minimise(slope, unknowns, {.evaluations = 500});
  EXPECT_NEAR(minimum.point[0], 0.1, 1e-6);
  EXPECT_NEAR(minimum.point[1], -1, 1e-6);
}

}  // namespace
}  // namespace tools
