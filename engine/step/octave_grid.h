// Grid points that divide every octave of the positive numbers evenly.
#pragma once

#include <bit>
#include <cstdint>

namespace engine {

// The leading bits of a double are its place among them, and back.
template <int Bits>
struct OctaveGrid {
  static constexpr std::int64_t per_octave = std::int64_t{1} << Bits;
  static constexpr std::uint64_t one = std::bit_cast<std::uint64_t>(1.0) >> (52 - Bits);

  static std::int64_t place(double x) {
    return std::int64_t((std::bit_cast<std::uint64_t>(x) >> (52 - Bits)) - one);
  }
  static double point(std::int64_t place) {
    return std::bit_cast<double>((std::uint64_t(place) + one) << (52 - Bits));
  }
};

}  // namespace engine
