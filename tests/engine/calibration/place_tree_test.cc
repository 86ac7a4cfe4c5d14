#include "engine/calibration/place_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "engine/base/random.h"

namespace engine {
namespace {

TEST(PlaceTree, FindsExactlyThePointsWithinReach) {
  constexpr std::size_t points = 300, dimensions = 3;
  std::vector<double> rows;
  for (std::size_t i = 0; i < points * dimensions; ++i) {
    // A coarse grid, so that many share a coordinate or all of them.
    rows.push_back(std::floor(6 * uniform(1, Stream::sampling, i)));
  }
  const PlaceTree tree(rows, points, dimensions);
  for (std::uint64_t n = 0; n < 200; ++n) {
    const double place[] = {6 * uniform(2, Stream::sampling, n, 0),
                            6 * uniform(2, Stream::sampling, n, 1),
                            6 * uniform(2, Stream::sampling, n, 2)};
    const double reach = 4 * uniform(2, Stream::sampling, n, 3);
    std::set<std::size_t> expected, found;
    for (std::size_t i = 0; i < points; ++i) {
      double squared = 0;
      for (std::size_t d = 0; d < dimensions; ++d) {
        squared += (rows[i * dimensions + d] - place[d]) * (rows[i * dimensions + d] - place[d]);
      }
      if (squared < reach) expected.insert(i);
    }
    tree.visit(place, reach, [&](std::size_t point, double) { found.insert(point); });
    EXPECT_EQ(found, expected);
  }
}

TEST(PlaceTree, AVisitorMayLowerTheBound) {
  std::vector<double> rows;
  for (int i = 0; i < 1000; ++i) rows.push_back(i);
  const PlaceTree tree(rows, rows.size(), 1);
  double nearest = std::numeric_limits<double>::infinity();
  std::size_t looked_at = 0;
  const double place = 700.25;
  tree.visit(&place, nearest, [&](std::size_t, double squared) {
    nearest = std::min(nearest, squared);
    ++looked_at;
  });
  EXPECT_EQ(nearest, 0.0625);
  EXPECT_LT(looked_at, 20u);
}

TEST(PlaceTree, NoPointsOrNoDimensions) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::size_t found = 0;
  PlaceTree().visit(nullptr, infinity, [&](std::size_t, double) { ++found; });
  EXPECT_EQ(found, 0u);
  PlaceTree({}, 1, 0).visit(nullptr, infinity, [&](std::size_t, double) { ++found; });
  EXPECT_EQ(found, 1u);
}

}  // namespace
}  // namespace engine
