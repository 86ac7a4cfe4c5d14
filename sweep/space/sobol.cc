#include "sweep/space/sobol.h"

#include <cstddef>

#include "engine/base/check.h"

namespace sweep {
namespace {

// S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections",
// SIAM J. Sci. Comput. 30 (2008): the head of their table new-joe-kuo-6.21201.
constexpr std::array<SobolSeed, kSobolDimensions - 1> kSeeds{{
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
    {7, 7, {1, 1, 3, 13, 7, 35, 63}},
    {7, 8, {1, 3, 5, 9, 1, 25, 53}},
    {7, 14, {1, 3, 1, 13, 9, 35, 107}},
    {7, 19, {1, 3, 1, 5, 27, 61, 31}},
    {7, 21, {1, 1, 5, 11, 19, 41, 61}},
    {7, 28, {1, 3, 5, 3, 3, 13, 69}},
    {7, 31, {1, 1, 7, 13, 1, 19, 1}},
    {7, 32, {1, 3, 7, 5, 13, 19, 59}},
    {7, 37, {1, 1, 3, 9, 25, 29, 41}},
    {7, 41, {1, 3, 5, 13, 23, 1, 55}},
    {7, 42, {1, 3, 7, 3, 13, 59, 17}},
}};

}  // namespace

const SobolSeed& sobol_seed(int dimension) {
  engine::check(dimension >= 1 && dimension < kSobolDimensions, "a Sobol dimension in the table");
  return kSeeds[std::size_t(dimension - 1)];
}

std::array<std::uint32_t, 32> sobol_directions(int dimension) {
  std::array<std::uint32_t, 32> directions{};
  if (dimension == 0) {  // the van der Corput sequence
    for (std::size_t i = 0; i < 32; ++i) directions[i] = 1U << (31 - i);
    return directions;
  }
  const SobolSeed& seed = sobol_seed(dimension);
  const std::size_t degree = std::size_t(seed.degree);
  for (std::size_t i = 0; i < 32; ++i) {
    if (i < degree) {
      directions[i] = seed.first[i] << (31 - i);
      continue;
    }
    // The recurrence of Bratley and Fox over the polynomial's coefficients.
    directions[i] = directions[i - degree] ^ (directions[i - degree] >> degree);
    for (std::size_t k = 1; k < degree; ++k) {
      if ((seed.coefficients >> (degree - 1 - k)) & 1U) directions[i] ^= directions[i - k];
    }
  }
  return directions;
}

std::uint32_t sobol_bits(const std::array<std::uint32_t, 32>& directions, std::uint64_t index) {
  std::uint32_t bits = 0;
  // Gray code: the order the sequence is published in.
  for (std::uint64_t gray = index ^ (index >> 1), i = 0; gray != 0 && i < 32; gray >>= 1, ++i) {
    if (gray & 1) bits ^= directions[std::size_t(i)];
  }
  return bits;
}

}  // namespace sweep
