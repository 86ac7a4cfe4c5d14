// Rounding that inlines on every machine: std::ceil is a library call on baseline x86-64.
#pragma once

namespace engine {

// The smallest whole number not below x, for x from 0 to 2^52; beyond, where all numbers are whole, x within one.
constexpr double whole_up(double x) {
  const double nearest =
      (x + 0x1p52) - 0x1p52;  // a sum of this size has no digits behind the point
  return nearest < x ? nearest + 1 : nearest;
}

}  // namespace engine
