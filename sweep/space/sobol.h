// The Sobol sequence: points that fill every dyadic box of the cube evenly.
#pragma once

#include <array>
#include <cstdint>

namespace sweep {

constexpr int kSobolDimensions = 32;
// Beyond this many points the 32 bits of the sequence repeat.
constexpr std::uint64_t kMostSobolPoints = std::uint64_t{1} << 32;

// Direction numbers of a dimension, from 0.
std::array<std::uint32_t, 32> sobol_directions(int dimension);

// The first 32 binary digits of the index-th point along a dimension.
std::uint32_t sobol_bits(const std::array<std::uint32_t, 32>& directions, std::uint64_t index);

// What a dimension is built from, for the test that the polynomials are primitive.
struct SobolSeed {
  int degree = 0;
  std::uint32_t coefficients = 0;  // of the polynomial, without the first and the last
  std::array<std::uint32_t, 7> first{};
};
const SobolSeed& sobol_seed(int dimension);  // dimension >= 1

}  // namespace sweep
