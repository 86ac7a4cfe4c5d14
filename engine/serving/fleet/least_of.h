// The least of many values that change one at a time, and its index. The values stand in a tree of cache lines: each line has eight
// values, and the next level has the least of each line with its index. So with thousands of values a change looks at five lines, of
// which all but the lowest are in the cache, and the least is always known.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace engine {

// Eight values in a line of memory, and which of them is the least: halves, pairs, ones, without a branch, since which way it went
// could not be foreseen.
template <class Value>
struct alignas(64) LineOfValues {
  static constexpr std::size_t kWidth = 8;

  std::array<Value, kWidth> values;

  // The first of the least.
  std::size_t least_place() const {
    const Value* const v = values.data();
    const Value left = std::min(std::min(v[0], v[1]), std::min(v[2], v[3]));
    const Value right = std::min(std::min(v[4], v[5]), std::min(v[6], v[7]));
    std::size_t place = right < left ? 4 : 0;
    place += std::min(v[place + 2], v[place + 3]) < std::min(v[place], v[place + 1]) ? 2 : 0;
    return place + (v[place + 1] < v[place] ? 1 : 0);
  }
  // The least of all values of a line but one: of the other half, the other pair and the other one.
  Value least_beside(std::size_t place) const {
    const Value* const v = values.data();
    const Value* const half = v + ((place & 4) ^ 4);
    const Value* const pair = v + ((place & 6) ^ 2);
    const Value near = std::min(v[place ^ 1], std::min(pair[0], pair[1]));
    return std::min(near, std::min(std::min(half[0], half[1]), std::min(half[2], half[3])));
  }
};

template <class Value>
class LeastOf {
 public:
  // `count` values, at least one, all `value`; `greatest` is no less than any value there will be.
  void reset(std::size_t count, Value value, Value greatest) {
    greatest_ = greatest;
    levels_ = 0;
    first_ = 0;
    lines_.clear();
    holders_.clear();
    for (std::size_t each = 1;; count = (count + kWidth - 1) / kWidth, each *= kWidth) {
      first_line_[levels_++] = lines_.size();
      for (std::size_t i = 0; i < count; i += kWidth) {
        lines_.push_back(all_of(greatest));
        std::fill_n(lines_.back().values.begin(), std::min(kWidth, count - i), value);
        if (each == 1) continue;
        Holders& holders = holders_.emplace_back();
        for (std::size_t k = 0; k < kWidth; ++k) holders[k] = std::uint32_t((i + k) * each);
      }
      if (count == 1) return;
    }
  }
  void set(std::size_t index, Value value) {
    Value& own = lines_[index / kWidth].values[index % kWidth];
    if (own == value) return;
    own = value;
    if (in_one_line()) return;  // a single line is looked at as a whole
    std::uint32_t before = std::uint32_t(index), now = before;  // index of the least one below
    for (std::size_t level = 1; level < levels_; ++level) {
      index /= kWidth;
      Value& least = lines_[first_line_[level] + index / kWidth].values[index % kWidth];
      std::uint32_t& holder = holders_of(level, index / kWidth)[index % kWidth];
      if (value > least || (value == least && now >= holder)) {
        if (holder != before) return;
        const Line& below = lines_[first_line_[level - 1] + index];
        const std::size_t place = below.least_place();
        value = below.values[place];
        now = holder_of(level - 1, index, place);
      }
      before = holder;
      least = value;
      holder = now;
    }
    first_ = now;
  }
  Value at(std::size_t index) const { return lines_[index / kWidth].values[index % kWidth]; }
  Value least() const { return in_one_line() ? at(first()) : lines_.back().values[0]; }
  // The lowest index that has it.
  std::size_t first() const { return in_one_line() ? lines_[0].least_place() : first_; }
  // The least of all but one, and the level of the tree at which it stands beside that one.
  struct Others {
    Value least{};
    std::size_t level = 0;
  };
  Others others(std::size_t index) const {
    Others others{.least = greatest_};
    for (std::size_t level = 0; level + 1 < levels_; ++level, index /= kWidth) {
      const Value beside = lines_[first_line_[level] + index / kWidth].least_beside(index % kWidth);
      if (beside < others.least) others = {.least = beside, .level = level};
    }
    return others;
  }
  // An index that has it, of all but `index`; there are others.
  std::size_t one_of(const Others& others, std::size_t index) const {
    for (std::size_t level = 0; level < others.level; ++level) index /= kWidth;
    const auto& values = lines_[first_line_[others.level] + index / kWidth].values;
    std::size_t place = 0;
    while ((place == index % kWidth ? greatest_ : values[place]) > others.least) ++place;
    return holder_of(others.level, index / kWidth, place);
  }
  // The first index from `from` on whose value is at most `limit`, or else of all; there is one.
  std::size_t next_at_most(std::size_t from, Value limit) const {
    const std::size_t levels = in_one_line() ? 1 : levels_ - 1;
    std::size_t index = from / kWidth, place = from % kWidth, level = 0;
    // Up until a line has one behind that place.
    for (; level < levels; ++level, place = index % kWidth + 1, index /= kWidth) {
      const auto& values = lines_[first_line_[level] + index].values;
      while (place < kWidth && values[place] > limit) ++place;
      if (place < kWidth) break;
    }
    if (level == levels) return first_at_most(limit);
    for (index = index * kWidth + place; level-- > 0; index = index * kWidth + place) {
      const auto& values = lines_[first_line_[level] + index].values;
      for (place = 0; values[place] > limit;) ++place;
    }
    return index;
  }
  // The lowest index whose value is at most `limit`; there is one.
  std::size_t first_at_most(Value limit) const {
    std::size_t index = 0;
    for (std::size_t level = levels_ - 1; level-- > 0;) {
      const Line& line = lines_[first_line_[level] + index];
      std::size_t place = 0;
      while (line.values[place] > limit) ++place;
      index = index * kWidth + place;
    }
    return index;
  }

 private:
  using Line = LineOfValues<Value>;
  static constexpr std::size_t kWidth = Line::kWidth;
  static constexpr std::size_t kMostLevels = 12;  // of 2^32 values

  bool in_one_line() const { return levels_ <= 2; }
  using Holders = std::array<std::uint32_t, kWidth>;
  static Line all_of(Value value) {
    Line line;
    line.values.fill(value);
    return line;
  }
  // By line of a level above the lowest.
  Holders& holders_of(std::size_t level, std::size_t line) {
    return holders_[first_line_[level] - first_line_[1] + line];
  }
  std::uint32_t holder_of(std::size_t level, std::size_t line, std::size_t place) const {
    if (level == 0) return std::uint32_t(line * kWidth + place);
    return holders_[first_line_[level] - first_line_[1] + line][place];
  }
  std::size_t levels_ = 0;
  std::size_t first_ = 0;
  Value greatest_{};
  std::array<std::size_t, kMostLevels + 1> first_line_{};  // of each level; the last has one value
  std::vector<Line> lines_;
  std::vector<Holders> holders_;  // of the levels above the lowest
};

}  // namespace engine
