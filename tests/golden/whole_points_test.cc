// Some 260 whole points by the shipped specs: key, labels, every figure and every row of the kernels table.
// Keys and words hold exactly, figures to a tolerance (libraries differ by architecture). A change here is a
// change of results: say why in engine/MODEL_CHANGES.md, then write the table anew with
// LLMSWEEP_UPDATE_GOLDEN=1.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine/evaluate.h"
#include "engine/tasks/task_table.h"
#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space_parts.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"

namespace sweep {
namespace {

// A step is a sum of some hundred terms; a served load adds up thousands of steps.
constexpr double kTolerance = 1e-12;
constexpr double kServedTolerance = 1e-9;

template <class Value>
double number_of(const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>) {
    return double(value);
  } else {
    return value.value;
  }
}

std::string text_of(const Point& point, const engine::Outcome& outcome) {
  std::string text =
      fmt::format("point {} {} {} {} bound {} tier {}{} saturation {}\n", point.index,
                  engine::name_of(point.scenario.task), engine::to_hex(point.key),
                  engine::name_of(outcome.status), engine::name_of(outcome.bound),
                  engine::name_of(outcome.tier), outcome.extrapolated ? " extrapolated" : "",
                  engine::name_of(outcome.saturation));
  if (!outcome.reason.empty()) text += "  reason " + outcome.reason + "\n";
  // Columns of groups that a task does not have are not written: a figure in one would be lost.
  const auto groups = engine::task_entry(point.scenario.task).figures;
  engine::Metrics::groups(outcome.metrics, [&](engine::FigureGroup group, auto&& each) {
    const bool written = std::ranges::find(groups, group) != groups.end();
    each([&](std::string_view name, const auto& value, std::string_view) {
      const double figure = number_of(value);
      if (std::isnan(figure)) return;
      EXPECT_TRUE(written) << name << " of point " << point.index;
      text += fmt::format("  {} {:.15g}\n", name, figure);
    });
  });
  for (const engine::KernelRow& row : outcome.kernels) {
    text += fmt::format(
        "  {} {} {} {} {} {}{} {:.15g} {:.15g} {:.15g} {:.15g} {:.15g} {:.15g}\n",
        engine::name_of(row.phase), engine::name_of(row.op), engine::name_of(row.family),
        engine::name_of(row.algorithm), engine::name_of(row.bound), engine::name_of(row.tier),
        row.extrapolated ? " extrapolated" : "", row.work.calls, row.work.time.value,
        row.work.low.value, row.work.high.value, row.work.flops.value, row.work.bytes.value);
  }
  return text;
}

std::string all_points() {
  const engine::Result<SweepSpec> spec =
      read_sweep(paths::source("tests/golden/whole_points.yaml"), Library({paths::specs()}));
  if (!spec) return engine::to_text(spec.mistakes());
  std::string text;
  PointBuilder builder(spec->space);
  for (std::uint64_t i = 0; i < spec->space.size(); ++i) {
    Point point;
    if (builder.build(i, point) != Admission::admitted) continue;
    text += text_of(point, engine::evaluate(point.scenario, *spec->resources));
  }
  return text;
}

bool same_word(const std::string& now, const std::string& then, double tolerance) {
  if (now == then) return true;
  double a = 0, b = 0;
  const char* const now_end = now.data() + now.size();
  const char* const then_end = then.data() + then.size();
  if (std::from_chars(now.data(), now_end, a).ptr != now_end) return false;
  if (std::from_chars(then.data(), then_end, b).ptr != then_end) return false;
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

bool same_line(const std::string& now, const std::string& then, double tolerance) {
  std::istringstream left(now), right(then);
  std::string a, b;
  while (left >> a) {
    if (!(right >> b) || !same_word(a, b, tolerance)) return false;
  }
  return !(right >> b);
}

TEST(Golden, WholePoints) {
  const std::string path = paths::source("tests/golden/whole_points.txt");
  const std::string now = all_points();
  if (std::getenv("LLMSWEEP_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << now;
    return;
  }
  std::istringstream left(now), right(toys::file_text(path));
  std::string a, b, point;
  int differences = 0;
  while (std::getline(left, a)) {
    if (!a.starts_with("  ")) point = a;
    const double tolerance =
        point.find(" serve ") == std::string::npos ? kTolerance : kServedTolerance;
    if (std::getline(right, b) && same_line(a, b, tolerance)) continue;
    ADD_FAILURE() << point << "\n  now  " << a << "\n  then " << b;
    if (++differences == 20) FAIL() << "and perhaps more";
  }
  EXPECT_FALSE(std::getline(right, b)) << "missing now: " << b;
}

// Whatever the layout, nothing is used more than it can be.
TEST(Golden, SharesOfAWholeAreAtMostOne) {
  std::istringstream lines(all_points());
  std::string line, point, name;
  for (double value; std::getline(lines, line);) {
    if (!line.starts_with("  ")) point = line;
    if (!(std::istringstream(line) >> name >> value)) continue;
    const bool share =
        name.ends_with("utilization") || name.ends_with("_share") || name.ends_with("attainment");
    EXPECT_TRUE(!share || value <= 1 + 1e-9) << point << ": " << name << ' ' << value;
  }
}

}  // namespace
}  // namespace sweep
