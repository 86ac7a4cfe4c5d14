#include "tools/cli/progress_display.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "tools/cli/cli.h"

namespace tools {

ProgressDisplay::ProgressDisplay(const sweep::Progress& progress, std::uint64_t total)
    : progress_(progress),
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
  const std::uint64_t done = progress_.positions();
  const double rate = double(done) / std::max(elapsed.count(), 1e-9);
  const double left = rate > 0 ? double(total_ - done) / rate : 0;
  std::string line = fmt::format("{:5.1f}%  {} of {}  {:.3g} points/s",
                                 100.0 * double(done) / double(std::max<std::uint64_t>(1, total_)),
                                 grouped(done), grouped(total_), rate);
  line += done > 0 ? fmt::format("  {} left", duration(left)) : "";
  for (std::size_t i = 0; i < enum_names(engine::Status{}).size(); ++i) {
    const auto status = static_cast<engine::Status>(i);
    const std::uint64_t count = progress_.with_status(status);
    if (count > 0) line += fmt::format("  {} {}", name_of(status), grouped(count));
  }
  if (progress_.left_out() > 0) line += fmt::format("  left out {}", grouped(progress_.left_out()));
  if (progress_.reused() > 0) line += fmt::format("  reused {}", grouped(progress_.reused()));
  const char* before = terminal_ ? "\r\033[K" : "";
  const char* after = terminal_ ? "" : "\n";
  // Not fmt::print, which throws when nobody reads: a sweep must not die of its progress.
  std::fputs((before + line + after).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace tools
