// Hands out the positions still to do, in order, in chunks as large as each worker asks for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "sweep/space/index_set.h"

namespace sweep {

// Positions to do, in portions; an empty one is the last. Called by one thread at a time.
using Supply = std::function<IndexSet()>;

class ChunkQueue {
 public:
  explicit ChunkQueue(Supply supply) : supply_(std::move(supply)) {}

  // The next positions, at most `most` of them and all of one range; nothing when all are out.
  std::optional<IndexRange> next(std::uint64_t most) {
    const std::lock_guard lock(mutex_);
    if (range_ == portion_.ranges().size() && !refill()) return std::nullopt;
    const IndexRange& range = portion_.ranges()[range_];
    const std::uint64_t begin = range.begin + used_;
    const std::uint64_t end = std::min(begin + most, range.end);
    used_ += end - begin;
    handed_out_ += end - begin;
    if (end == range.end) {
      ++range_;
      used_ = 0;
    }
    return IndexRange{begin, end};
  }

  // Whether `done` positions are all there were.
  bool all_done(std::uint64_t done) {
    const std::lock_guard lock(mutex_);
    return done == handed_out_ && range_ == portion_.ranges().size() && !refill();
  }

 private:
  // Under the lock.
  bool refill() {
    if (!ended_) portion_ = supply_();
    range_ = 0;
    ended_ = portion_.empty();
    return !ended_;
  }

  const Supply supply_;
  std::mutex mutex_;
  IndexSet portion_;
  std::size_t range_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t handed_out_ = 0;
  bool ended_ = false;
};

}  // namespace sweep
