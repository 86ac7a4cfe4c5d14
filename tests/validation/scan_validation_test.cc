// Scans of prompts, their gradients and scans of single tokens, measured on an H200 by tools/gpu/scan_sweep.py. What kernels reach of
// the peak was read off these rows, so this holds the reading; only where a test says so it is a check.
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

struct Errors {
  double sum = 0;
  int rows = 0;
  double mean() const { return sum / rows; }
};

Scan scan_in(const toys::CsvRow& row) {
  const auto count = [&](const char* name) { return std::int64_t(std::stoll(row.at(name))); };
  const std::string& what = row.at("what");
  return {.rule = what.starts_with("channel_delta") ? ScanRule::channel_delta
                  : what.starts_with("delta")       ? ScanRule::delta
                                                    : ScanRule::add,
          .sequences = count("sequences"),
          .tokens = double(count("tokens")),
          .heads = count("heads"),
          .head_dim = count("head_dim"),
          .state = count("state"),
          .groups = count("groups")};
}

// By what `group` calls a row; it leaves out those that it has no name for.
template <class Group>
std::map<std::string, Errors> errors_by(Group&& group) {
  const Device device = toys::shipped("devices", "h200-sxm").device;
  std::map<std::string, Errors> errors;
  for (const toys::CsvRow& row : toys::csv_rows("calibration/h200-sxm/scans.csv")) {
    const std::string& what = row.at("what");
    if (what.starts_with("norm")) continue;
    const Scan scan = scan_in(row);
    const std::string name = group(what, scan);
    if (name.empty()) continue;
    const double measured = std::stod(row.at("seconds"));
    errors[name].sum +=
        std::abs(predicted(scan, what.ends_with("backward"), device) / measured - 1);
    ++errors[name].rows;
  }
  return errors;
}

TEST(Scans, TakeWhatTheyTookOnAnH200) {
  const auto errors = errors_by([](const std::string& what, const Scan&) {
    return what.find("delta") != what.npos ? std::string() : what;
  });
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_LT(errors.at("forward").mean(), 0.15);
  EXPECT_LT(errors.at("decode").mean(), 0.03);
  // Gradients here are of scans without gates, which training computes again with them.
  EXPECT_LT(errors.at("backward").mean(), 0.3);
}

TEST(DeltaRules, TakeWhatTheyTookOnAnH200) {
  const auto errors = errors_by([](const std::string& what, const Scan&) {
    return what.find("delta") != what.npos ? what : std::string();
  });
  ASSERT_EQ(errors.size(), 6u);
  for (const char* rule : {"delta_", "channel_delta_"}) {
    EXPECT_LT(errors.at(rule + std::string("forward")).mean(), 0.04) << rule;
    EXPECT_LT(errors.at(rule + std::string("backward")).mean(), 0.03) << rule;
    EXPECT_LT(errors.at(rule + std::string("decode")).mean(), 0.06) << rule;
  }
}

}  // namespace
}  // namespace engine
