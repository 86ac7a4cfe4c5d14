#include "sweep/space/sampled_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace sweep {

double rounded_down(double value) {
  const double whole = std::round(value);
  return std::abs(value - whole) <= 1e-12 * std::abs(value) ? whole : std::floor(value);
}

double rounded(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return value;
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific, digits - 1)
                       .ptr;
  double result = value;
  std::from_chars(buffer.data(), end, result);
  return result;
}

engine::LeafValue sampled_value(const Interval& interval, engine::LeafKind kind, double sample) {
  const bool whole = kind == engine::LeafKind::integer;
  const double low = interval.low;
  // Each whole number gets the interval up to the next one, the last included.
  const double high = whole ? interval.high + 1 : interval.high;
  const double value = interval.scale == Interval::Scale::linear
                           ? low + sample * (high - low)
                           : std::exp(std::log(low) + sample * (std::log(high) - std::log(low)));
  if (whole) {
    return std::int64_t(std::clamp(std::floor(rounded(value, 12)), interval.low, interval.high));
  }
  return std::clamp(rounded(value, 12), interval.low, interval.high);
}

}  // namespace sweep
