// A shared expert beside the chosen ones of a layer on an H200, measured by tools/gpu/shared_beside.py: both at once take as long as
// the chosen ones and what memory and arithmetic need of the shared one. Nothing is fitted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/kernels/kernel_time.h"
#include "engine/model/shared_experts.h"
#include "tests/support/csv_rows.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.at(values.size() / 2);
}

TEST(MeasuredSharedExperts, BesideOthersAddWhatTheyNeedAtLeast) {
  const Device device = toys::shipped("devices", "h200-sxm").device;
  std::vector<double> errors, one_after_the_other, hidden_of_many;
  for (const toys::CsvRow& row : toys::csv_rows("calibration/h200-sxm/shared_beside.csv")) {
    const auto number = [&row](const char* name) { return std::stod(row.at(name)); };
    const auto tokens = std::int64_t(number("tokens")),
               width = std::int64_t(number("shared_width"));
    const auto hidden = std::int64_t(number("hidden"));
    const auto least = [&](std::int64_t n, std::int64_t k) {
      const Gemm product{.m = tokens, .n = n, .k = k};
      return kernel_time(Family::gemm, product, device, nullptr).least.value;
    };
    const double measured = number("beside_s");
    if (double(tokens) >= kTokensBeside) {
      hidden_of_many.push_back((number("after_s") - measured) / number("shared_s"));
      continue;
    }
    const double predicted = number("chosen_s") + least(2 * width, hidden) + least(hidden, width);
    errors.push_back(std::abs(predicted / measured - 1));
    one_after_the_other.push_back(number("after_s") / measured - 1);
  }
  ASSERT_GE(errors.size(), 40U);
  RecordProperty("median_error", std::to_string(median(errors)));
  EXPECT_LT(median(errors), 0.05);
  EXPECT_GT(median(one_after_the_other), 0.08) << "there would be nothing to hide";
  EXPECT_LT(median(hidden_of_many), 0.3) << "steps of many tokens would hide them, too";
}

}  // namespace
}  // namespace engine
