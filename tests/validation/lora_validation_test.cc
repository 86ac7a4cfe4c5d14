// Low-rank updates of many adapters on an H200, measured by tools/gpu/lora_sweep.py. The model of such a call is a roofline,
// to which nothing was fitted.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/kernels/kernel_time.h"
#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"
#include "tests/support/csv_rows.h"
#include "tests/support/paths.h"

namespace engine {
namespace {

TEST(MeasuredLora, IsNoFasterThanItsRooflineOnAnH200) {
  const auto spec =
      sweep::read_sweep_text("base: {device: h200-sxm, model: llama-3.1-8b}\n",
                             paths::specs("lora.yaml"), sweep::Library({paths::specs("")}));
  ASSERT_TRUE(spec) << to_text(spec.mistakes());
  const Device device = spec->space.base().device;
  std::vector<double> shares;
  for (const toys::CsvRow& row : toys::csv_rows("calibration/h200-sxm/lora.csv")) {
    const auto number = [&row](const char* name) { return std::int64_t(std::stoll(row.at(name))); };
    const Lora op{.tokens = double(number("tokens")),
                  .adapters = double(number("adapters")),
                  .rank = number("rank"),
                  .input = number("input"),
                  .output = number("output")};
    const double predicted = kernel_time(Family::lora, op, device, nullptr).time.value;
    shares.push_back(predicted / std::stod(row.at("seconds")));
    EXPECT_LT(shares.back(), 1.15) << row.at("tokens") << " tokens of " << row.at("adapters");
  }
  ASSERT_GE(shares.size(), 150U);
  std::ranges::sort(shares);
  RecordProperty("median_share", std::to_string(shares[shares.size() / 2]));
  EXPECT_GT(shares.front(), 0.15);
  EXPECT_GT(shares[shares.size() / 2], 0.4);
}

}  // namespace
}  // namespace engine
