#include "engine/speculation/acceptance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace engine {

std::optional<Acceptance> read_acceptance(std::string_view text) {
  Acceptance acceptance{};
  std::size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    if (*at == ' ') {
      ++at;
      continue;
    }
    double value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    const bool whole = next == end || *next == ' ';
    if (error != std::errc{} || !whole || count == acceptance.size()) return std::nullopt;
    if (!(value >= 0 && value <= 1)) return std::nullopt;
    acceptance[count++] = value;
    at = next;
  }
  if (count == 0) return std::nullopt;
  std::fill(acceptance.begin() + std::ptrdiff_t(count), acceptance.end(), acceptance[count - 1]);
  return acceptance;
}

double expected_tokens(const Acceptance& acceptance, std::int64_t tokens) {
  double sum = 1, reached = 1;
  for (std::int64_t i = 0; i < tokens; ++i) {
    reached *= acceptance[std::size_t(i)];
    sum += reached;
  }
  return sum;
}

Pace expected_pace(double expected, std::int64_t proposed) {
  constexpr std::int64_t grid = 60;
  const std::int64_t tokens = std::llround(expected * double(grid));
  const std::int64_t shared = std::gcd(tokens, grid);
  return {.tokens = tokens / shared, .steps = grid / shared, .queries = proposed + 1};
}

}  // namespace engine
