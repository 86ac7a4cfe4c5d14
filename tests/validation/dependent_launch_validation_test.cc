// What programmatic dependent launch saves between two kernels of an H200, measured by tools/gpu/dependent_launch.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/csv_rows.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

TEST(MeasuredDependentLaunch, SavesAsMuchOfAGapAsTheHostSays) {
  std::vector<double> saved;
  for (const toys::CsvRow& row : toys::csv_rows("calibration/h200-sxm/dependent_launch.csv")) {
    saved.push_back(std::stod(row.at("plain_s")) - std::stod(row.at("dependent_s")));
    EXPECT_GT(saved.back(), 0);
  }
  ASSERT_GE(saved.size(), 7U);
  std::ranges::sort(saved);
  const HostSettings waits = toys::shipped("hosts", "tensorrt-llm-2025").host;
  const HostSettings launches = toys::shipped("hosts", "tensorrt-llm").host;
  EXPECT_NEAR((waits.kernel_gap - launches.kernel_gap).value, saved[saved.size() / 2], 0.5e-7);
}

}  // namespace
}  // namespace engine
