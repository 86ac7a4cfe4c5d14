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

inline std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

// nullopt where a word is no number.
inline std::optional<std::vector<double>> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  for (const std::string_view word : words_of(text)) {
    const auto parsed = number(word);
    if (!parsed) return std::nullopt;
    numbers.push_back(*parsed);
  }
  return numbers;
}

}  // namespace engine
