// Rounding that inlines on every machine: std::ceil is a library call on baseline x86-64.
#pragma once

#include <cstdint>

namespace engine {

// The smallest whole number not below x, for x from 0 on.
constexpr double whole_up(double x) {
  if (!(x < 0x1p53)) return x;  // all of them are whole
  const double truncated = double(std::int64_t(x));
  return truncated < x ? truncated + 1 : truncated;
}

}  // namespace engine
