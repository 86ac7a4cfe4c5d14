#include "sweep/run/progress.h"

namespace sweep {

void Progress::add(const Tally& tally) {
  for (std::size_t i = 0; i < by_status_.size(); ++i) {
    by_status_[i].fetch_add(tally.by_status[i], std::memory_order_relaxed);
  }
  left_out_.fetch_add(tally.positions() - tally.rows(), std::memory_order_relaxed);
  reused_.fetch_add(tally.reused, std::memory_order_relaxed);
  positions_.fetch_add(tally.positions(), std::memory_order_relaxed);
}

}  // namespace sweep
