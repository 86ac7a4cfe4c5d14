// How far a run is: counters that workers add to and a display reads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "engine/outcome.h"
#include "sweep/space/row_sink.h"

namespace sweep {

class Progress {
 public:
  void add(const Tally& tally);

  std::uint64_t positions() const { return positions_.load(std::memory_order_relaxed); }
  std::uint64_t with_status(engine::Status status) const {
    return by_status_[static_cast<std::size_t>(status)].load(std::memory_order_relaxed);
  }
  std::uint64_t left_out() const { return left_out_.load(std::memory_order_relaxed); }
  std::uint64_t reused() const { return reused_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> positions_{0};
  std::array<std::atomic<std::uint64_t>, enum_names(engine::Status{}).size()> by_status_{};
  std::atomic<std::uint64_t> left_out_{0};  // rejected or not applicable
  std::atomic<std::uint64_t> reused_{0};
};

}  // namespace sweep
