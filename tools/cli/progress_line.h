// How far a run is, in one line.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "sweep/run/progress.h"
#include "tools/terminal/number_text.h"

namespace tools {

// How far a run is after `seconds` of this call: "62.5%  5 of 8  1 points/s  3 s left  ok 5". The share
// counts what an earlier call did, the pace only what this one did. A worker that takes more than its
// share makes `total` larger.
inline std::string progress_line(const sweep::Progress& progress, std::uint64_t before,
                                 std::uint64_t total, double seconds) {
  const std::uint64_t done = progress.positions();
  total = std::max(total, before + done);
  const double rate = double(done) / std::max(seconds, 1e-9);
  const double left = rate > 0 ? double(total - before - done) / rate : 0;
  std::string line =
      fmt::format("{:5.1f}%  {} of {}  {:.3g} points/s",
                  100.0 * double(before + done) / double(std::max<std::uint64_t>(1, total)),
                  grouped(before + done), grouped(total), rate);
  line += done > 0 ? fmt::format("  {} left", duration(left)) : "";
  for (std::size_t i = 0; i < enum_names(engine::Status{}).size(); ++i) {
    const auto status = static_cast<engine::Status>(i);
    const std::uint64_t count = progress.with_status(status);
    if (count > 0) line += fmt::format("  {} {}", name_of(status), grouped(count));
  }
  if (progress.left_out() > 0) line += fmt::format("  left out {}", grouped(progress.left_out()));
  if (progress.reused() > 0) line += fmt::format("  reused {}", grouped(progress.reused()));
  if (before > 0) line += fmt::format("  before {}", grouped(before));
  return line;
}

}  // namespace tools
