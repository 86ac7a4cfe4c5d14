#include "engine/calibration/point_set.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "engine/base/random.h"
#include "engine/calibration/product_families.h"

namespace engine {
namespace {

constexpr std::array<Coordinate, 2> kPlane{{{"x"}, {"y"}}};

TEST(PointSet, ReturnsMeasuredPointsExactly) {
  std::vector<MeasuredPoint> points;
  for (int x = 1; x <= 4096; x *= 2) {
    for (int y = 1; y <= 4096; y *= 4) {
      points.push_back({coordinates(x, y), std::sin(double(x + 3 * y))});
    }
  }
  const PointSet set(points, kPlane);
  for (const MeasuredPoint& point : points) {
    EXPECT_EQ(set.residual_at(point.shape), point.residual);
  }
}

TEST(PointSet, StaysWithinWhatWasMeasured) {
  std::vector<MeasuredPoint> points;
  for (std::uint64_t n = 0; n < 500; ++n) {
    points.push_back({coordinates(1 + 1000 * uniform(1, Stream::sampling, n, 0),
                                  1 + 1000 * uniform(1, Stream::sampling, n, 1)),
                      uniform(1, Stream::sampling, n, 2)});
  }
  const PointSet set(points, kPlane);
  for (std::uint64_t n = 0; n < 2000; ++n) {
    const double x = 1 + 2000 * uniform(2, Stream::sampling, n, 0);
    const double y = 1 + 2000 * uniform(2, Stream::sampling, n, 1);
    const double here = set.residual_at(coordinates(x, y));
    EXPECT_GE(here, 0);
    EXPECT_LE(here, 1);
    // Continuous: a step of a millionth changes little, whichever points are near.
    EXPECT_NEAR(set.residual_at(coordinates(x * (1 + 1e-9), y)), here, 1e-4);
  }
}

TEST(PointSet, TheMiddleOfALineIsTheMeanOfItsEnds) {
  const std::vector<MeasuredPoint> ends{{coordinates(1, 1), 0.2}, {coordinates(4, 1), 0.4}};
  EXPECT_NEAR(PointSet(ends, kPlane).residual_at(coordinates(2, 1)), 0.3, 1e-12);
  // Sequence lengths are taken as they are, not by their logarithm.
  constexpr std::array<Coordinate, 2> lengths{{{"x", Scale::length}, {"y"}}};
  EXPECT_NEAR(PointSet(ends, lengths).residual_at(coordinates(2.5, 1)), 0.3, 1e-12);
}

TEST(PointSet, BetweenTwoLinesIsTheMeanOfBoth) {
  const PointSet set({{coordinates(8, 1), 0.2}, {coordinates(8, 4), 0.4}}, kPlane);
  EXPECT_NEAR(set.residual_at(coordinates(8, 2)), 0.3, 1e-12);
}

TEST(PointSet, OnePointSpeaksForAll) {
  const PointSet set({{coordinates(8, 8), 0.5}}, kPlane);
  EXPECT_EQ(set.residual_at(coordinates(1000, 1)), 0.5);
  EXPECT_EQ(PointSet().residual_at(coordinates(1, 1)), 0);
}

TEST(PointSet, ALineSpeaksForItselfUnlessItHasAGap) {
  // Beside the line of three points, another one says something else.
  std::vector<MeasuredPoint> points{{coordinates(8, 1), 0.2},
                                    {coordinates(16, 1), 0.2},
                                    {coordinates(256, 1), 0.2},
                                    {coordinates(64, 2), 0.8}};
  const PointSet set(points, kPlane);
  EXPECT_EQ(set.residual_at(coordinates(11, 1)), 0.2);
  EXPECT_GT(set.residual_at(coordinates(64, 1)), 0.4);
}

TEST(PointSet, PointsSayWhatTreesLeaveOver) {
  // One tree: 0.5 for more than 100 rows.
  BoostedTrees tree{.features = Features::product, .processors = 132};
  tree.asked.assign(kTreeDepth, 0);
  tree.limit.assign(kTreeDepth, 100);
  tree.leaves.assign(kTreeLeaves, 0);
  tree.leaves.back() = 5000;
  const PointSet set(
      {{coordinates(64, 4096, 4096, 1, 0), 0.1}, {coordinates(128, 4096, 4096, 1, 0), 0.6}},
      coordinates_for<GemmFit>(), tree);
  EXPECT_NEAR(set.residual_at(coordinates(64, 4096, 4096, 1, 0)), 0.1, 1e-15);
  EXPECT_NEAR(set.residual_at(coordinates(128, 4096, 4096, 1, 0)), 0.6, 1e-15);
  EXPECT_NEAR(set.residual_at(coordinates(96, 4096, 4096, 1, 0)), 0.1, 1e-15);
  EXPECT_NEAR(set.residual_at(coordinates(104, 4096, 4096, 1, 0)), 0.6, 1e-15);
  // Far away, what is left over here is no longer believed.
  EXPECT_NEAR(set.residual_at(coordinates(128, 4096, 1 << 20, 1, 0)), 0.5, 0.01);
}

// Whoever asks first, and however many ask at once: points of a sweep, a copy of it, and several threads.
TEST(PointSet, SaysTheSameToEveryThread) {
  std::vector<MeasuredPoint> points;
  for (int x = 1; x <= 4096; x *= 2) {
    for (int y = 1; y <= 4096; y *= 4) {
      points.push_back({coordinates(x, y), std::sin(double(x + 3 * y))});
    }
  }
  const auto answers = [](const PointSet& set) {
    std::vector<double> all;
    for (int i = 1; i < 300; ++i) all.push_back(set.residual_at(coordinates(i, 7 * i)));
    return all;
  };
  const std::vector<double> alone = answers(PointSet(points, kPlane));
  const PointSet set(points, kPlane), copy = set;
  std::vector<std::vector<double>> said(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < said.size(); ++i) {
    threads.emplace_back([&, i] { said[i] = answers(i % 2 == 0 ? set : copy); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<double>& one : said) EXPECT_EQ(one, alone);
}

TEST(PointSet, OfEqualShapesTheFirstIsKept) {
  const PointSet set({{coordinates(8, 8), 0.5}, {coordinates(8, 8), 0.9}}, kPlane);
  EXPECT_EQ(set.points().size(), 1u);
  EXPECT_EQ(set.residual_at(coordinates(8, 8)), 0.5);
}

}  // namespace
}  // namespace engine
