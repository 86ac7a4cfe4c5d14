// The figures of a kernel as the kernels table writes them, and back.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>

#include "engine/step/work.h"

namespace results {

inline constexpr std::size_t kWorkColumns = [] {
  std::size_t count = 0;
  const engine::Work none;
  engine::Work::fields(none, [&](auto&&...) { ++count; });
  return count;
}();

namespace detail {
template <class T>
auto& number_in(T& member) {
  if constexpr (std::is_arithmetic_v<std::remove_const_t<T>>) {
    return member;
  } else {
    return member.value;
  }
}
}  // namespace detail

// Hands the value of each column to take(value), in the order of the columns.
template <class Take>
void visit_written(const engine::Work& work, Take&& take) {
  const double seconds = work.exposed().value;
  engine::Work::fields(work, [&](const char*, const auto& member, engine::Written written,
                                 const char*) {
    const double value = detail::number_in(member);
    switch (written) {
      case engine::Written::plainly:
        return take(value);
      case engine::Written::exposed:
        return take(seconds);
      // A calibration has one such ratio for a whole family, so the column takes next to nothing, where the ends in
      // seconds would more than double the table; single precision keeps the rounding of a division from making
      // equal ratios different.
      case engine::Written::as_ratio:
        return take(seconds > 0 ? double(float(value / seconds)) : 1);
      case engine::Written::if_known:
        return take(value != 0 ? value : std::numeric_limits<double>::quiet_NaN());
    }
  });
}

// The work whose columns have these values; NaN: the file does not say.
inline engine::Work work_of(std::span<const double, kWorkColumns> values) {
  engine::Work work;
  const double* next = values.data();
  engine::Work::fields(work, [&](const char*, auto& member, engine::Written written, const char*) {
    double value = *next++;
    if (!(value == value)) value = 0;
    // `seconds` stands before the ratios to it.
    if (written == engine::Written::as_ratio) value *= work.time.value;
    detail::number_in(member) = value;
  });
  work.time += work.hidden;
  return work;
}

}  // namespace results
