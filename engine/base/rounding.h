// Rounding that inlines on every machine: std::ceil is a library call on baseline x86-64.
#pragma once

#include <cstdint>

namespace engine {

// The smallest whole number not below x, for 0 <= x < 2^63.
constexpr double whole_up(double x) {
  const double truncated = double(std::int64_t(x));
  return truncated < x ? truncated + 1 : truncated;
}

}  // namespace engine
