#include "sweep/input/limits.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <utility>

namespace sweep {
namespace {

using engine::Mistake;

struct Suffix {
  std::string_view text;
  int shift;
};
constexpr Suffix kSuffixes[] = {{"G", 30}, {"M", 20}, {"K", 10}, {"", 0}};

// 0 where the text is no such number.
std::int64_t limit_value(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (!text.ends_with(suffix.text)) continue;
    text.remove_suffix(suffix.text.size());
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> suffix.shift;
    return whole && value >= 1 && value <= most ? value << suffix.shift : 0;
  }
  return 0;
}

std::string known_limits() {
  std::string names;
  InputLimits limits;
  InputLimits::fields(limits, [&](std::string_view name, std::int64_t, std::string_view) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  });
  return names;
}

}  // namespace

engine::Result<InputLimits> parse_limits(std::string_view text) {
  InputLimits limits;
  std::vector<Mistake> mistakes;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string_view name = item.substr(0, equals);
    const std::int64_t value = limit_value(item.substr(std::min(equals + 1, item.size())));
    bool known = false;
    InputLimits::fields(limits, [&](std::string_view field, std::int64_t& limit, std::string_view) {
      if (field != name) return;
      known = true;
      if (value > 0) limit = value;
    });
    if (known && value > 0) continue;
    mistakes.push_back(
        {{kLimitsVariable},
         known ? "'" + std::string(item) + "' gives no whole number above zero"
               : "there is no limit '" + std::string(name) + "'",
         known ? "write it as in 'table_bytes=8G,depth=200'" : "known limits: " + known_limits()});
  }
  if (!mistakes.empty()) return mistakes;
  return limits;
}

InputLimits input_limits() {
  const char* stated = std::getenv(kLimitsVariable);
  if (stated == nullptr) return {};
  const engine::Result<InputLimits> limits = parse_limits(stated);
  return limits ? *limits : InputLimits{};
}

Mistake beyond_limit(engine::Location where, std::string what, std::string_view limit) {
  return {std::move(where), std::move(what),
          "if that is meant, raise the limit: " + std::string(kLimitsVariable) + "=" +
              std::string(limit) + "=..."};
}

std::string limit_text(std::int64_t value) {
  constexpr std::pair<int, const char*> units[] = {{30, " GiB"}, {20, " MiB"}, {10, " KiB"}};
  for (const auto& [shift, unit] : units) {
    const std::int64_t whole = value >> shift;
    if (whole > 0 && whole << shift == value) return std::to_string(whole) + unit;
  }
  return std::to_string(value);
}

}  // namespace sweep
