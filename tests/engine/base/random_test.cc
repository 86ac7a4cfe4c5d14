#include "engine/base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/base/many_draws.h"

namespace engine {
namespace {

TEST(Random, IsAFunctionOfItsArguments) {
  EXPECT_EQ(random_bits(1, Stream::arrivals, 5), random_bits(1, Stream::arrivals, 5));
  EXPECT_NE(random_bits(1, Stream::arrivals, 5), random_bits(1, Stream::arrivals, 6));
  EXPECT_NE(random_bits(1, Stream::arrivals, 5), random_bits(2, Stream::arrivals, 5));
  EXPECT_NE(random_bits(1, Stream::arrivals, 5), random_bits(1, Stream::routing, 5));
}

TEST(Random, MatchesThePublishedPhilox) {
  // Known answer of Philox4x32-10 for an all-zero counter and key: 6627e8d5 e169c58d ...
  EXPECT_EQ(random_bits(0, Stream{0}, 0), 0xe169c58d6627e8d5u);
}

TEST(Random, ManyAtOnceAreThoseOneByOne) {
  for (const std::size_t count : {0, 1, 2, 3, 4, 5, 7, 64, 20'000}) {
    std::vector<std::uint64_t> seeds(count), n(count);
    std::vector<double> u(count);
    for (std::size_t i = 0; i < count; ++i) {
      seeds[i] = i * 0x123456789abcdefull;
      n[i] = (i << 33) + 7 * i;
    }
    draw(Stream::acceptance, seeds, n, u);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(u[i], uniform(seeds[i], Stream::acceptance, n[i]));
    }
  }
}

TEST(Random, HasTheMomentsOfItsDistribution) {
  constexpr int count = 100'000;
  double sum = 0, squares = 0, waits = 0, bell = 0, bell_squares = 0;
  for (int i = 0; i < count; ++i) {
    const double u = uniform(3, Stream::sampling, std::uint64_t(i));
    EXPECT_GT(u, 0);
    EXPECT_LT(u, 1);
    sum += u;
    squares += u * u;
    waits += exponential(3, Stream::arrivals, std::uint64_t(i));
    const double z = normal(3, Stream::prompt_lengths, std::uint64_t(i));
    bell += z;
    bell_squares += z * z;
  }
  // Four standard errors of each mean.
  EXPECT_NEAR(sum / count, 0.5, 4 * 0.2887 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1.0 / 3, 4 * 0.298 / std::sqrt(count));
  EXPECT_NEAR(waits / count, 1, 4 / std::sqrt(count));
  EXPECT_NEAR(bell / count, 0, 4 / std::sqrt(count));
  EXPECT_NEAR(bell_squares / count, 1, 4 * std::sqrt(2.0 / count));
}

TEST(Random, NormalQuantileInvertsTheDistribution) {
  for (const double z : {-6.0, -2.5, -0.1, 0.0, 1.0, 3.0, 5.0}) {
    const double u = 0.5 * std::erfc(-z / std::sqrt(2.0));
    EXPECT_NEAR(normal_quantile(u), z, 1e-9 * std::max(1.0, std::abs(z)) + (z > 4 ? 1e-7 : 0));
  }
}

}  // namespace
}  // namespace engine
