#include "sweep/space/index_set.h"

#include <algorithm>

namespace sweep {

void IndexSet::add(IndexRange range) {
  if (range.begin >= range.end) return;
  // The first range that touches or follows the new one; ranges mostly arrive in order, so look at
  // the end first.
  auto first = ranges_.end();
  if (!ranges_.empty() && ranges_.back().end >= range.begin) {
    first = std::lower_bound(
        ranges_.begin(), ranges_.end(), range.begin,
        [](const IndexRange& have, std::uint64_t begin) { return have.end < begin; });
  }
  auto last = first;
  while (last != ranges_.end() && last->begin <= range.end) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
    ++last;
  }
  const auto place = ranges_.erase(first, last);
  ranges_.insert(place, range);
}

IndexSet IndexSet::minus(const IndexSet& other) const {
  IndexSet left;
  auto hole = other.ranges_.begin();
  for (IndexRange range : ranges_) {
    while (hole != other.ranges_.end() && hole->end <= range.begin) ++hole;
    auto cut = hole;
    while (cut != other.ranges_.end() && cut->begin < range.end) {
      if (cut->begin > range.begin) left.ranges_.push_back({range.begin, cut->begin});
      range.begin = std::max(range.begin, cut->end);
      ++cut;
    }
    if (range.begin < range.end) left.ranges_.push_back(range);
  }
  return left;
}

bool IndexSet::contains(std::uint64_t index) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), index,
      [](std::uint64_t value, const IndexRange& have) { return value < have.end; });
  return after != ranges_.end() && after->begin <= index;
}

std::uint64_t IndexSet::count() const {
  std::uint64_t total = 0;
  for (const IndexRange& range : ranges_) total += range.end - range.begin;
  return total;
}

}  // namespace sweep
