// Numbers as a person reads them.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace tools {

// "1,234,567".
inline std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = 3; i < text.size(); i += 4) text.insert(text.size() - i, ",");
  return text;
}

// "1 point", "1,234 points".
inline std::string counted(std::uint64_t number, std::string_view thing) {
  return fmt::format("{} {}{}", grouped(number), thing, number == 1 ? "" : "s");
}

// "1.5 s", "3 min 20 s", "2.1 h".
inline std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 1e-3) return fmt::format("{:.2g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.2g} s", seconds);
  const auto whole = std::uint64_t(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{:.1f} days", seconds / 86400);
}

// "1.2 MB".
inline std::string size_text(double bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

}  // namespace tools
