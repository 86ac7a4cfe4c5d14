// Randomness as a function: the n-th number of a stream depends on (seed, stream, n) and on nothing
// else, so no order of evaluation, thread or neighbour can change it.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace engine {

// What a stream of numbers is for; two uses never share numbers.
enum class Stream : std::uint32_t {
  arrivals = 1,
  prompt_lengths = 2,
  output_lengths = 3,
  routing = 4,
  sessions = 5,
  think_time = 6,
  acceptance = 7,
  priorities = 8,
  tenants = 9,
  failures = 10,
  classes = 11,
  predictions = 12,
  adapters = 13,
  samples = 14,
  sampling = 100,  // plus the dimension of a sampled axis
};

// 64 random bits (Philox4x32-10).
std::uint64_t random_bits(std::uint64_t seed, Stream stream, std::uint64_t n,
                          std::uint32_t lane = 0);

// Two independent words of 64 random bits for the price of one; the first is `random_bits`.
std::array<std::uint64_t, 2> random_words(std::uint64_t seed, Stream stream, std::uint64_t n,
                                          std::uint32_t lane = 0);

// Uniform in the open interval (0, 1): safe to take the logarithm of.
double uniform(std::uint64_t seed, Stream stream, std::uint64_t n, std::uint32_t lane = 0);

// Exponential with mean one.
double exponential(std::uint64_t seed, Stream stream, std::uint64_t n, std::uint32_t lane = 0);

// Standard normal (inverse of the distribution function, one uniform a number).
double normal(std::uint64_t seed, Stream stream, std::uint64_t n, std::uint32_t lane = 0);

// Two independent standard normals from one draw (Box and Muller).
std::array<double, 2> normal_pair(std::uint64_t seed, Stream stream, std::uint64_t n,
                                  std::uint32_t lane = 0);

// One seed out of two numbers, all bits mixed.
std::uint64_t mixed_seed(std::uint64_t a, std::uint64_t b);

// The inverse of the standard normal distribution function, for u in (0, 1).
double normal_quantile(double u);
// The standard normal distribution function.
inline double normal_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

}  // namespace engine
