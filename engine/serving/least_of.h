// The least of many values that change one at a time, and the first that is small enough: a tournament
// over their indices, so a change and a question each take as many comparisons as the tree is high. Eight play
// at a time, who stand in one line of memory: of a fleet's tree only the lowest lines are ever out of the cache.
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
    groups_.clear();
    levels_ = 0;
    std::size_t players = count;
    do {
      first_[levels_++] = groups_.size();
      const std::size_t groups = (players + kGroup - 1) / kGroup;
      groups_.resize(groups_.size() + groups, filled(greatest));
      for (std::size_t i = 0; i < players; ++i) node(levels_ - 1, i) = value;
      players = groups;
    } while (players > 1);
  }
  void set(std::size_t index, Value value) {
    for (std::size_t level = 0;; ++level, index /= kGroup) {
      Value& now = node(level, index);
      if (now == value) return;
      now = value;
      if (level + 1 == levels_) return;
      value = least_of(group(level, index / kGroup));
    }
  }
  Value at(std::size_t index) const { return groups_[index / kGroup].values[index % kGroup]; }
  Value least() const { return least_of(groups_.back()); }
  // The least of all others.
  Value least_but(std::size_t index) const {
    Value least = greatest_;
    for (std::size_t level = 0; level < levels_; ++level, index /= kGroup) {
      Group others = group(level, index / kGroup);
      others.values[index % kGroup] = greatest_;
      least = std::min(least, least_of(others));
    }
    return least;
  }
  // An index with that value; any, where there are no others.
  std::size_t place_of_least_but(std::size_t index) const {
    Value least = greatest_;
    std::size_t found = 0, from = 0;
    for (std::size_t level = 0; level < levels_; ++level, index /= kGroup) {
      Group others = group(level, index / kGroup);
      others.values[index % kGroup] = greatest_;
      const Value here = least_of(others);
      if (here >= least) continue;
      least = here;
      from = level;
      found = index / kGroup * kGroup + first_in(others, here);
    }
    return descend(from, found, least);
  }
  // The lowest index whose value is at most `limit`; there is one.
  std::size_t first_at_most(Value limit) const {
    return descend(levels_ - 1, first_in(groups_.back(), limit), limit);
  }

 private:
  static constexpr std::size_t kGroup = 8;
  static constexpr std::size_t kMostLevels = 22;  // of 2^64 values
  struct alignas(64) Group {
    std::array<Value, kGroup> values;
  };
  static Group filled(Value value) {
    Group group;
    group.values.fill(value);
    return group;
  }
  // In pairs, not one after the other: no comparison waits for more than two others.
  static Value least_of(const Group& group) {
    const auto& of = group.values;
    return std::min(std::min(std::min(of[0], of[1]), std::min(of[2], of[3])),
                    std::min(std::min(of[4], of[5]), std::min(of[6], of[7])));
  }
  static std::size_t first_in(const Group& group, Value limit) {
    std::size_t place = 0;
    while (place + 1 < kGroup && limit < group.values[place]) ++place;
    return place;
  }
  Group& group(std::size_t level, std::size_t index) { return groups_[first_[level] + index]; }
  const Group& group(std::size_t level, std::size_t index) const {
    return groups_[first_[level] + index];
  }
  Value& node(std::size_t level, std::size_t index) {
    return group(level, index / kGroup).values[index % kGroup];
  }
  // From a node down to the first value below it that is at most `limit`.
  std::size_t descend(std::size_t level, std::size_t index, Value limit) const {
    for (; level > 0; --level) {
      index = index * kGroup + first_in(group(level - 1, index), limit);
    }
    return index;
  }

  std::size_t levels_ = 0;
  std::array<std::size_t, kMostLevels> first_{};  // groups of a level, the values' own first
  std::vector<Group> groups_;  // the least of each is one of the next level's values
  Value greatest_{};
};

}  // namespace engine
