// Ctrl-C: the first one lets what is in flight finish, the second leaves at once.
#pragma once

#include <atomic>

namespace sweep {

class StopSignal {
 public:
  bool requested() const { return requested_.load(std::memory_order_relaxed); }
  // For callers that cannot know this class.
  const std::atomic<bool>& flag() const { return requested_; }
  void request() { requested_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
};

// While it lives, SIGINT and SIGTERM set `stop`. A SIGINT after that ends the process with status 130; a SIGTERM changes nothing more.
class StopOnSignals {
 public:
  explicit StopOnSignals(StopSignal& stop);
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;
};

}  // namespace sweep
