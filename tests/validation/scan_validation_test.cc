// Scans of prompts, their gradients and scans of single tokens, measured on an H200 by tools/gpu/scan_sweep.py. What kernels reach of
// the peak was read off these rows, so this holds the reading; it is no independent check.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "engine/kernels/kernel_time.h"
#include "engine/model/backward_ops.h"
#include "tests/support/csv_rows.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

// Seconds of the operation of a row, or of those that carry its gradients back.
double predicted(const Scan& scan, bool backward, const Device& device) {
  OpList forward, inputs, weights;
  forward.add(OpName::scan, Family::linear_attention, 1, scan);
  backward_ops(forward, NarrowTurn::apart, inputs, weights);
  double seconds = 0;
  for (const PlannedOp& op : backward ? inputs : forward) {
    seconds += op.calls * kernel_time(op.family, op.op, device, nullptr).total().value;
  }
  return seconds;
}

TEST(Scans, TakeWhatTheyTookOnAnH200) {
  const Device device = toys::shipped("devices", "h200-sxm").device;
  std::map<std::string, std::pair<double, int>> errors;
  for (const toys::CsvRow& row : toys::csv_rows("calibration/h200-sxm/scans.csv")) {
    const std::string& what = row.at("what");
    if (what.starts_with("norm") || what.starts_with("delta")) continue;
    const auto count = [&](const char* name) { return std::int64_t(std::stoll(row.at(name))); };
    const Scan scan{.sequences = count("sequences"),
                    .tokens = double(count("tokens")),
                    .heads = count("heads"),
                    .head_dim = count("head_dim"),
                    .state = count("state"),
                    .groups = count("groups")};
    const double measured = std::stod(row.at("seconds"));
    // Shorter ones are all start.
    if (measured < 100e-6) continue;
    auto& [sum, rows] = errors[what];
    sum += std::abs(predicted(scan, what == "backward", device) / measured - 1);
    ++rows;
  }
  ASSERT_EQ(errors.size(), 3u);
  for (const auto& [what, error] : errors) {
    // Gradients here are of scans without gates, which training computes again with them.
    EXPECT_LT(error.first / error.second, what == "forward" ? 0.15 : 0.3) << what;
  }
}

}  // namespace
}  // namespace engine
