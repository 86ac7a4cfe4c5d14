#include "tools/calibrate/fit/tree_fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tools {
namespace {

using engine::coordinates;
using engine::Features;
using engine::MeasuredPoint;

// Products of 128 columns a tile on 132 multiprocessors: a started wave costs as much as a full one.
double wave_loss(double m, double n) {
  const double waves = std::ceil(m / 128) * std::ceil(n / 128) / 132;
  return 0.5 * std::log(std::ceil(waves) / waves);
}

std::vector<MeasuredPoint> products(double scale) {
  std::vector<MeasuredPoint> points;
  for (const double n : {1024., 2048., 3072., 4096., 6144., 8192., 12288., 28672.}) {
    for (double m = 128; m <= 8192; m += 256) {
      const double size = std::floor(m * scale);
      points.push_back({coordinates(size, n, 4096, 1, 0), wave_loss(size, n)});
    }
  }
  return points;
}

double mean_error(const engine::BoostedTrees& trees, const std::vector<MeasuredPoint>& points) {
  double sum = 0;
  for (const MeasuredPoint& point : points) sum += std::abs(trees.at(point.shape) - point.residual);
  return sum / double(points.size());
}

TEST(TreeFit, FindsTheRuleOfWavesAndKeepsItOnOtherShapes) {
  const auto trees = fit_trees(products(1), Features::product, 132, {});
  const double unexplained = mean_error({}, products(1));
  EXPECT_LT(mean_error(trees, products(1)), 0.1 * unexplained);
  EXPECT_LT(mean_error(trees, products(1.01)), 0.3 * unexplained);
  EXPECT_EQ(trees.size(), TreeOptions{}.trees);
}

TEST(TreeFit, TheSamePointsGiveTheSameTrees) {
  EXPECT_EQ(fit_trees(products(1), Features::product, 132, {}),
            fit_trees(products(1), Features::product, 132, {}));
}

TEST(TreeFit, OneFallbackDoesNotBendTheRest) {
  auto points = products(1);
  const double before = mean_error(fit_trees(points, Features::product, 132, {}), products(1));
  points[100].residual = 8;  // three thousand times slower
  const auto trees = fit_trees(points, Features::product, 132, {});
  EXPECT_LT(mean_error(trees, products(1)), before + 0.01);
}

TEST(TreeFit, TooFewOrEqualPointsHaveNoRules) {
  auto points = products(1);
  EXPECT_TRUE(fit_trees(points, Features::none, 132, {}).empty());
  points.resize(kLeastForTrees - 1);
  EXPECT_TRUE(fit_trees(points, Features::product, 132, {}).empty());
  const std::vector<MeasuredPoint> equal(200, points.front());
  EXPECT_TRUE(fit_trees(equal, Features::product, 132, {}).empty());
}

TEST(BoostedTrees, DecodeIsContinuousInTheContext) {
  std::vector<MeasuredPoint> points;
  for (double context = 100; context < 60000; context *= 1.3) {
    for (double batch = 1; batch <= 256; batch *= 2) {
      points.push_back({coordinates(context, batch, 32, 8, 128, 0), context > 5000 ? 0.3 : -0.3});
    }
  }
  const auto trees = fit_trees(points, Features::decode, 132, {});
  ASSERT_FALSE(trees.empty());
  EXPECT_NEAR(trees.at(coordinates(20000, 16, 32, 8, 128, 0)), 0.3, 0.02);
  for (double context = 50; context < 100000; context *= 1.01) {
    const double here = trees.at(coordinates(context, 16, 32, 8, 128, 0));
    const double beside = trees.at(coordinates(context * (1 + 1e-9), 16, 32, 8, 128, 0));
    EXPECT_NEAR(here, beside, 1e-6) << context;
  }
}

}  // namespace
}  // namespace tools
