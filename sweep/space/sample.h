// The n-th of N sample points of a unit cube, from n alone: no order, no thread, nothing stored.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sweep {

enum class SampleMethod : std::uint8_t { random, latin_hypercube, sobol };
constexpr std::array<std::string_view, 3> enum_names(SampleMethod) {
  return {"random", "latin_hypercube", "sobol"};
}

// A bijection of [0, size) chosen by a key: a Feistel network over the next power of four, walked
// until it falls inside. Any element costs the same, and none is stored.
class KeyedPermutation {
 public:
  KeyedPermutation() = default;
  KeyedPermutation(std::uint64_t size, std::uint64_t seed, std::uint32_t lane);
  std::uint64_t operator()(std::uint64_t index) const;

 private:
  static constexpr int kRounds = 8;
  std::uint64_t size_ = 1;
  int half_bits_ = 1;
  std::array<std::uint64_t, kRounds> keys_{};
};

// One dimension of a sample. `lane` keeps dimensions apart: it comes from the path that is sampled,
// so that a dimension added later moves no other.
class SampleDimension {
 public:
  struct Options {
    SampleMethod method = SampleMethod::random;
    std::uint64_t count = 1;
    std::uint64_t seed = 0;
    std::uint32_t lane = 0;
    int sobol_dimension = 0;  // from 0
    bool scrambled = false;   // Sobol: shifted by the seed
  };
  SampleDimension() = default;
  explicit SampleDimension(const Options& options);

  // In the open interval (0, 1).
  double operator()(std::uint64_t index) const;

 private:
  Options options_;
  KeyedPermutation strata_;
  std::array<std::uint32_t, 32> directions_{};
  std::uint32_t shift_ = 0;
};

}  // namespace sweep
