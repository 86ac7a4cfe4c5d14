#include "tools/cli/cli.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>

#include "tools/cli/specs_folder.h"

namespace tools {

sweep::Library standard_library() { return sweep::Library::standard(specs_folder()); }

std::optional<sweep::SweepSpec> read_or_complain(const std::filesystem::path& file) {
  auto spec = sweep::read_sweep(file, standard_library());
  if (!spec) {
    fmt::print(stderr, "{}", engine::to_text(spec.mistakes()));
    return std::nullopt;
  }
  return std::move(spec).value();
}

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = 3; i < text.size(); i += 4) text.insert(text.size() - i, ",");
  return text;
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 1e-3) return fmt::format("{:.2g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.2g} s", seconds);
  const auto whole = std::uint64_t(seconds);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
  return fmt::format("{:.1f} days", seconds / 86400);
}

std::string size_text(double bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

}  // namespace tools
