#include "tools/cli/progress_display.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tools/cli/progress_line.h"

namespace tools {

ProgressDisplay::ProgressDisplay(const sweep::Progress& progress, std::uint64_t before,
                                 std::uint64_t total)
    : progress_(progress),
      before_(before),
      total_(total),
      terminal_(isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      thread_([this] { show_until_done(); }) {}

ProgressDisplay::~ProgressDisplay() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  done_changed_.notify_all();
  thread_.join();
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void ProgressDisplay::show_until_done() {
  // A log wants a line now and then, a person wants to see it move.
  const auto pause = terminal_ ? std::chrono::milliseconds(200) : std::chrono::seconds(10);
  std::unique_lock lock(mutex_);
  while (!done_changed_.wait_for(lock, pause, [this] { return done_; })) print_line();
}

void ProgressDisplay::print_line() {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const char* before = terminal_ ? "\r\033[K" : "";
  const char* after = terminal_ ? "" : "\n";
  const std::string line = progress_line(progress_, before_, total_, elapsed.count());
  // Not fmt::print, which throws where the output is closed: a sweep must not end because of its progress line.
  std::fputs((before + line + after).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace tools
