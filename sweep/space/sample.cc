#include "sweep/space/sample.h"

#include <bit>

#include "engine/base/random.h"
#include "sweep/space/sobol.h"

namespace sweep {
namespace {

// The finalizer of splitmix64: every bit of the input reaches every bit of the output.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Numbers of a lane: first the jitter of each point, far beyond them the keys of permutations.
constexpr std::uint64_t kKeysFrom = std::uint64_t{1} << 63;

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t size, std::uint64_t seed, std::uint32_t lane)
    : size_(size) {
  const int bits = size > 1 ? int(std::bit_width(size - 1)) : 1;
  half_bits_ = (bits + 1) / 2;
  for (int round = 0; round < kRounds; ++round) {
    keys_[std::size_t(round)] =
        engine::random_bits(seed, engine::Stream::sampling, kKeysFrom + std::uint64_t(round), lane);
  }
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t index) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = index >> half_bits_;
    std::uint64_t right = index & mask;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mixed(right ^ key) & mask);
      left = right;
      right = next;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

SampleDimension::SampleDimension(const Options& options) : options_(options) {
  if (options.method == SampleMethod::latin_hypercube) {
    strata_ = KeyedPermutation(options.count, options.seed, options.lane);
  }
  if (options.method == SampleMethod::sobol) {
    directions_ = sobol_directions(options.sobol_dimension);
    if (options.scrambled) {
      shift_ = std::uint32_t(
          engine::random_bits(options.seed, engine::Stream::sampling, kKeysFrom, options.lane));
    }
  }
}

double SampleDimension::operator()(std::uint64_t index) const {
  switch (options_.method) {
    case SampleMethod::random:
      break;
    case SampleMethod::latin_hypercube: {
      const double jitter =
          engine::uniform(options_.seed, engine::Stream::sampling, index, options_.lane);
      return (double(strata_(index)) + jitter) / double(options_.count);
    }
    case SampleMethod::sobol:
      // The middle of the cell: the sequence's own first point would be the corner 0.
      return (double(sobol_bits(directions_, index) ^ shift_) + 0.5) * 0x1p-32;
  }
  return engine::uniform(options_.seed, engine::Stream::sampling, index, options_.lane);
}

}  // namespace sweep
