// The least of many values that change one at a time, and the first that is small enough: a tree of lines of memory. Each
// line holds eight values, the next level the least of each line, so that with thousands of values a change and a question
// each look at five lines, of which but the lowest are at hand.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace engine {

template <class Value>
class LeastOf {
 public:
  // `count` values, at least one, all `value`; `greatest` is no less than any value there will be.
  void reset(std::size_t count, Value value, Value greatest) {
    greatest_ = greatest;
    levels_ = 0;
    lines_.clear();
    for (;; count = (count + kWidth - 1) / kWidth) {
      first_line_[levels_++] = lines_.size();
      const std::size_t whole = count / kWidth;
      lines_.resize(lines_.size() + whole, all_of(value));
      if (whole * kWidth == count) continue;
      lines_.push_back(all_of(greatest));
      std::fill_n(lines_.back().values.begin(), count % kWidth, value);
      if (count == 1) return;
    }
  }
  void set(std::size_t index, Value value) {
    for (std::size_t level = 0;; ++level) {
      Line& line = lines_[first_line_[level] + index / kWidth];
      Value& there = line.values[index % kWidth];
      const Value before = there;
      if (before == value) return;
      there = value;
      if (level + 1 == levels_) return;
      index /= kWidth;
      const Value least = at(level + 1, index);
      if (value >= least) {
        if (before > least) return;
        value = least_in(line);
      }
    }
  }
  Value at(std::size_t index) const { return at(0, index); }
  Value least() const { return lines_.back().values[0]; }
  // The lowest index that has it.
  std::size_t first() const { return first_at_most(least()); }
  // The least of all others.
  Value least_but(std::size_t index) const {
    if (at(index) != least()) return least();
    Value others = greatest_;
    for (std::size_t level = 0; level + 1 < levels_; ++level, index /= kWidth) {
      others = std::min(others, least_in(without(level, index)));
    }
    return others;
  }
  // An index that has it; there are others.
  std::size_t first_but(std::size_t index) const {
    if (at(index) != least()) return first();
    std::size_t level_of_least = 0, line_of_least = index / kWidth, left_out = index;
    Value others = greatest_;
    for (std::size_t level = 0; level + 1 < levels_; ++level, index /= kWidth) {
      const Value here = least_in(without(level, index));
      if (here >= others && level > 0) continue;
      others = here;
      level_of_least = level;
      line_of_least = index / kWidth;
      left_out = index;
    }
    const Line line = without(level_of_least, left_out);
    std::size_t place = 0;
    while (line.values[place] > others) ++place;
    return first_below(level_of_least, line_of_least * kWidth + place, others);
  }
  // The lowest index whose value is at most `limit`; there is one.
  std::size_t first_at_most(Value limit) const { return first_below(levels_ - 1, 0, limit); }

 private:
  static constexpr std::size_t kWidth = 8;
  static constexpr std::size_t kMostLevels = 22;  // of 2^64 values

  struct alignas(64) Line {
    std::array<Value, kWidth> values;
  };
  static Line all_of(Value value) {
    Line line;
    line.values.fill(value);
    return line;
  }
  static Value least_in(const Line& line) {
    const auto& v = line.values;
    const Value left = std::min(std::min(v[0], v[1]), std::min(v[2], v[3]));
    return std::min(left, std::min(std::min(v[4], v[5]), std::min(v[6], v[7])));
  }
  // The line of a value, and not that value.
  Line without(std::size_t level, std::size_t index) const {
    Line line = lines_[first_line_[level] + index / kWidth];
    line.values[index % kWidth] = greatest_;
    return line;
  }
  // Of those that a value of some level stands for: the lowest index that has at most `limit`.
  std::size_t first_below(std::size_t level, std::size_t index, Value limit) const {
    while (level-- > 0) {
      const Line& line = lines_[first_line_[level] + index];
      std::size_t place = 0;
      while (line.values[place] > limit) ++place;
      index = index * kWidth + place;
    }
    return index;
  }
  Value at(std::size_t level, std::size_t index) const {
    return lines_[first_line_[level] + index / kWidth].values[index % kWidth];
  }

  std::size_t levels_ = 0;
  Value greatest_{};
  std::array<std::size_t, kMostLevels + 1> first_line_{};  // of each level; the last has one value
  std::vector<Line> lines_;
};

}  // namespace engine
