// Words and numbers of a line of a calibration's text.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

namespace engine {

// nullopt where the text is no finite number.
inline std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// nullopt where a word is no number.
inline std::optional<std::vector<double>> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  numbers.reserve(std::size_t(std::ranges::count(text, ' ')) + 1);
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const auto parsed = number(text.substr(at, end - at));
    if (!parsed) return std::nullopt;
    numbers.push_back(*parsed);
    at = end;
  }
  return numbers;
}

}  // namespace engine
