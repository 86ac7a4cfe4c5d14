#include "engine/base/percentiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/base/random.h"

namespace engine {
namespace {

// By rank, between the two nearest, of a sorted copy.
double sorted_percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double rank = share * double(values.size() - 1);
  const auto below = std::size_t(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - double(below)) * (values[above] - values[below]);
}

TEST(Samples, ArePreciselyWhatSortingGives) {
  for (std::uint64_t number = 0; number < 300; ++number) {
    const auto draw = [&](std::uint64_t n) { return uniform(number, Stream::sampling, n); };
    const auto count = std::size_t(1 + 400 * draw(0));
    Samples samples;
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) {
      // Nothing at all, equal ones, and from nanoseconds to hours.
      const double kind = draw(2 * i + 1);
      const double value = kind < 0.2   ? 0
                           : kind < 0.4 ? 0.25
                                        : std::pow(10, 13 * draw(2 * i + 2) - 9);
      samples.add(value);
      values.push_back(value);
      if (i == count / 2) samples.percentile(0.5);  // asking in between changes nothing
    }
    for (const double share : {0.99, 0.0, 0.5, 0.9, 0.95, 1.0, 0.123}) {
      EXPECT_EQ(samples.percentile(share), sorted_percentile(values, share))
          << number << " " << share;
    }
  }
}

TEST(Samples, OfNothingThereIsNoPercentile) {
  Samples samples;
  EXPECT_TRUE(std::isnan(samples.percentile(0.5)));
  EXPECT_TRUE(std::isnan(samples.mean()));
}

}  // namespace
}  // namespace engine
