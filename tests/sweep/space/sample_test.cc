#include "sweep/space/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "sweep/space/sobol.h"

namespace sweep {
namespace {

SampleDimension dimension(SampleMethod method, std::uint64_t count, std::uint32_t lane,
                          std::uint64_t seed = 1) {
  return SampleDimension({.method = method, .count = count, .seed = seed, .lane = lane});
}

TEST(KeyedPermutation, VisitsEveryElementOnce) {
  for (const std::uint64_t size : {1, 2, 3, 5, 16, 17, 200, 1000, 4096, 10007}) {
    const KeyedPermutation permutation(size, 42, 7);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < size; ++i) seen.insert(permutation(i));
    EXPECT_EQ(seen.size(), size);
    EXPECT_LT(*seen.rbegin(), size);
  }
}

TEST(KeyedPermutation, SeedsAndLanesDiffer) {
  const KeyedPermutation a(1000, 1, 1);
  const KeyedPermutation b(1000, 2, 1);
  const KeyedPermutation c(1000, 1, 2);
  int same_seed = 0;
  int same_lane = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    same_seed += a(i) == b(i) ? 1 : 0;
    same_lane += a(i) == c(i) ? 1 : 0;
  }
  // Two random permutations agree in one place on average.
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(same_lane, 10);
}

TEST(LatinHypercube, EveryStratumOfEveryDimensionHasOnePoint) {
  for (const std::uint64_t count : {1, 2, 7, 200, 1000}) {
    for (std::uint32_t lane = 0; lane < 5; ++lane) {
      const SampleDimension draw = dimension(SampleMethod::latin_hypercube, count, lane);
      std::vector<int> hits(count, 0);
      for (std::uint64_t i = 0; i < count; ++i) {
        const double u = draw(i);
        ASSERT_GT(u, 0);
        ASSERT_LT(u, 1);
        ++hits[std::size_t(u * double(count))];
      }
      for (const int hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

TEST(LatinHypercube, DimensionsAreUncorrelated) {
  constexpr std::uint64_t count = 2000;
  const SampleDimension x = dimension(SampleMethod::latin_hypercube, count, 1);
  const SampleDimension y = dimension(SampleMethod::latin_hypercube, count, 2);
  double sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += (x(i) - 0.5) * (y(i) - 0.5);
  // Correlation times sqrt(count) is about a standard normal.
  EXPECT_LT(std::abs(sum * 12 / double(count)) * std::sqrt(double(count)), 4);
}

TEST(Random, IsUniform) {
  constexpr std::uint64_t count = 20000;
  const SampleDimension draw = dimension(SampleMethod::random, count, 3);
  std::vector<int> hits(10, 0);
  for (std::uint64_t i = 0; i < count; ++i) ++hits[std::size_t(draw(i) * 10)];
  for (const int hit : hits) EXPECT_NEAR(hit, 2000, 5 * std::sqrt(1800.0));
}

TEST(Sobol, EveryBlockOfAPowerOfTwoFillsEveryCell) {
  for (int d = 0; d < kSobolDimensions; ++d) {
    for (const bool scrambled : {false, true}) {
      const SampleDimension draw({.method = SampleMethod::sobol,
                                  .count = 1024,
                                  .seed = 9,
                                  .lane = 5,
                                  .sobol_dimension = d,
                                  .scrambled = scrambled});
      for (const std::uint64_t block : {0, 256, 512, 768}) {
        std::set<int> cells;
        for (std::uint64_t i = block; i < block + 256; ++i) cells.insert(int(draw(i) * 256));
        EXPECT_EQ(cells.size(), 256U) << "dimension " << d;
      }
    }
  }
}

// A (t, 2)-sequence: of 2^m points, every elementary interval of area 2^(t-m) holds 2^t. The first
// two dimensions have t = 0.
TEST(Sobol, ElementaryIntervalsOfTheFirstTwoDimensionsAreBalanced) {
  const SampleDimension x({.method = SampleMethod::sobol, .count = 256, .sobol_dimension = 0});
  const SampleDimension y({.method = SampleMethod::sobol, .count = 256, .sobol_dimension = 1});
  for (int bits = 0; bits <= 8; ++bits) {
    std::set<std::pair<int, int>> cells;
    for (std::uint64_t i = 0; i < 256; ++i) {
      cells.emplace(int(x(i) * std::pow(2, bits)), int(y(i) * std::pow(2, 8 - bits)));
    }
    EXPECT_EQ(cells.size(), 256U) << bits;
  }
}

// The published start of the sequence (Joe and Kuo's own example, dimensions 1 to 3).
TEST(Sobol, StartsAsPublished) {
  const double expected[][3] = {{0, 0, 0},          {0.5, 0.5, 0.5},       {0.75, 0.25, 0.25},
                                {0.25, 0.75, 0.75}, {0.375, 0.375, 0.625}, {0.875, 0.875, 0.125}};
  for (int d = 0; d < 3; ++d) {
    const auto directions = sobol_directions(d);
    for (std::uint64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(double(sobol_bits(directions, i)) * 0x1p-32, expected[i][d]) << i << " " << d;
    }
  }
}

// x must generate all non-zero residues of its polynomial over GF(2): what "primitive" means.
TEST(Sobol, PolynomialsArePrimitive) {
  std::set<std::pair<int, unsigned>> distinct;
  for (int d = 1; d < kSobolDimensions; ++d) {
    const SobolSeed& seed = sobol_seed(d);
    distinct.emplace(seed.degree, seed.coefficients);
    const unsigned polynomial = (1U << seed.degree) | (seed.coefficients << 1) | 1U;
    unsigned power = 1;
    unsigned order = 0;
    do {
      power <<= 1;
      if (power >> seed.degree) power ^= polynomial;
      ++order;
    } while (power != 1 && order < 1000);
    EXPECT_EQ(order, (1U << seed.degree) - 1) << "dimension " << d;
    for (int i = 0; i < seed.degree; ++i) {
      EXPECT_EQ(seed.first[std::size_t(i)] % 2, 1U) << "dimension " << d;
      EXPECT_LT(seed.first[std::size_t(i)], 2U << i) << "dimension " << d;
    }
  }
  EXPECT_EQ(distinct.size(), std::size_t(kSobolDimensions - 1));
}

}  // namespace
}  // namespace sweep
