// A set of point indices as sorted, disjoint, half-open ranges: what is done, what is left.
#pragma once

#include <cstdint>
#include <vector>

namespace sweep {

struct IndexRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  auto operator<=>(const IndexRange&) const = default;
};

class IndexSet {
 public:
  IndexSet() = default;
  explicit IndexSet(IndexRange range) { add(range); }

  void add(IndexRange range);
  void add(const IndexSet& other) {
    for (const IndexRange& range : other.ranges_) add(range);
  }
  IndexSet minus(const IndexSet& other) const;
  bool contains(std::uint64_t index) const;
  bool empty() const { return ranges_.empty(); }
  std::uint64_t count() const;
  const std::vector<IndexRange>& ranges() const { return ranges_; }

  bool operator==(const IndexSet&) const = default;

 private:
  std::vector<IndexRange> ranges_;
};

}  // namespace sweep
