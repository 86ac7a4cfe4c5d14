// Shows how far a run is: a line that rewrites itself on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "sweep/run/progress.h"

namespace tools {

class ProgressDisplay {
 public:
  // Of `total` positions `before` are done already, by an earlier call. Shows until destroyed.
  ProgressDisplay(const sweep::Progress& progress, std::uint64_t before, std::uint64_t total);
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

 private:
  void show_until_done();
  void print_line();

  const sweep::Progress& progress_;
  const std::uint64_t before_;
  const std::uint64_t total_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::thread thread_;  // last: starts when everything above is there
};

}  // namespace tools
