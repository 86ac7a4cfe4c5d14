// The least of many values that change one at a time, and the first that is small enough: a tournament
// over their indices, so a change and a question each take as many comparisons as the tree is high.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace engine {

template <class Value>
class LeastOf {
 public:
  // `count` values, at least one, all `value`; `greatest` is no less than any value there will be.
  void reset(std::size_t count, Value value, Value greatest) {
    leaves_ = std::bit_ceil(count);
    greatest_ = greatest;
    nodes_.assign(2 * leaves_, greatest);
    winners_.assign(leaves_, 0);
    std::fill_n(nodes_.begin() + std::ptrdiff_t(leaves_), count, value);
    for (std::size_t node = leaves_; --node > 0;) {
      const std::size_t lesser = lesser_child(node);
      nodes_[node] = nodes_[lesser];
      winners_[node] = winner_of(lesser);
    }
  }
  void set(std::size_t index, Value value) {
    std::size_t node = leaves_ + index;
    if (nodes_[node] == value) return;
    nodes_[node] = value;
    while (node > 1) {
      node /= 2;
      const std::size_t lesser = lesser_child(node);
      const Value least = nodes_[lesser];
      const std::uint32_t winner = winner_of(lesser);
      if (nodes_[node] == least && winners_[node] == winner) return;
      nodes_[node] = least;
      winners_[node] = winner;
    }
  }
  Value at(std::size_t index) const { return nodes_[leaves_ + index]; }
  Value least() const { return nodes_[1]; }
  // The lowest index that has it.
  std::size_t first() const { return leaves_ > 1 ? winners_[1] : 0; }
  // The least of all others.
  Value least_but(std::size_t index) const {
    std::size_t node = leaves_ + index;
    if (nodes_[node] != nodes_[1]) return nodes_[1];
    Value least = greatest_;
    for (; node > 1; node /= 2) least = std::min(least, nodes_[node ^ 1]);
    return least;
  }
  // The lowest index whose value is at most `limit`; there is one.
  std::size_t first_at_most(Value limit) const {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (nodes_[2 * node] <= limit ? 0 : 1);
    return node - leaves_;
  }

 private:
  // The one to the left where they are equal.
  std::size_t lesser_child(std::size_t node) const {
    return 2 * node + (nodes_[2 * node + 1] < nodes_[2 * node] ? 1 : 0);
  }
  std::uint32_t winner_of(std::size_t node) const {
    return node < leaves_ ? winners_[node] : std::uint32_t(node - leaves_);
  }

  std::size_t leaves_ = 1;
  Value greatest_{};
  std::vector<Value>
      nodes_;  // the root at 1, children of n at 2n and 2n + 1, values from leaves_ on
  std::vector<std::uint32_t> winners_;  // whose value a node above them has
};

}  // namespace engine
