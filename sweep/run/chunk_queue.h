// Hands out the positions still to do, in order, in chunks as large as each worker asks for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>

#include "sweep/space/index_set.h"

namespace sweep {

class ChunkQueue {
 public:
  explicit ChunkQueue(const IndexSet& todo) : todo_(todo) {}

  // The next positions, at most `most` of them and all of one range; nothing when all are out.
  std::optional<IndexRange> next(std::uint64_t most) {
    const std::lock_guard lock(mutex_);
    const std::vector<IndexRange>& ranges = todo_.ranges();
    if (range_ == ranges.size()) return std::nullopt;
    const std::uint64_t begin = ranges[range_].begin + used_;
    const std::uint64_t end = std::min(begin + most, ranges[range_].end);
    used_ += end - begin;
    if (end == ranges[range_].end) {
      ++range_;
      used_ = 0;
    }
    return IndexRange{begin, end};
  }

 private:
  const IndexSet& todo_;
  std::mutex mutex_;
  std::size_t range_ = 0;
  std::uint64_t used_ = 0;
};

}  // namespace sweep
