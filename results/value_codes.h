// Numbers for the values of a column, for a dictionary of them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace results {

// Spreads whatever it multiplies over all bits: 2^64 over the golden ratio.
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

// Numbers for distinct values, in order of appearance.
class ValueCodes {
 public:
  ValueCodes() : places_(kFirst) {}

  std::int32_t code(std::uint64_t value) {
    if (!values_.empty()) {
      if (value == values_[std::size_t(last_)]) return last_;
      // Columns of kernels repeat with every point: what came after the last value before is likely to
      // come again.
      const std::int32_t guess = after_[std::size_t(last_)];
      if (value == values_[std::size_t(guess)]) return last_ = guess;
    }
    if (2 * values_.size() >= places_.size()) grow();
    std::int32_t& place = find(value);
    if (place == 0) {
      values_.push_back(value);
      place = std::int32_t(values_.size());
      after_.push_back(0);
    }
    after_[std::size_t(last_)] = place - 1;
    return last_ = place - 1;
  }
  const std::vector<std::uint64_t>& values() const { return values_; }

 private:
  static constexpr std::size_t kFirst = 256;

  std::int32_t& find(std::uint64_t value) {
    const std::size_t mask = places_.size() - 1;
    // The highest bits: round doubles end in zeros, and so do their products.
    std::size_t at = std::size_t(value * kGolden >> (64 - std::countr_zero(places_.size())));
    while (places_[at] != 0 && values_[std::size_t(places_[at] - 1)] != value) at = (at + 1) & mask;
    return places_[at];
  }
  void grow() {
    places_.assign(4 * places_.size(), 0);
    for (std::size_t i = 0; i < values_.size(); ++i) find(values_[i]) = std::int32_t(i + 1);
  }

  std::vector<std::uint64_t> values_;
  std::vector<std::int32_t> after_;   // by number of a value: that of the one that came next
  std::vector<std::int32_t> places_;  // one more than the number of a value; 0: free
  std::int32_t last_ = 0;
};

}  // namespace results
