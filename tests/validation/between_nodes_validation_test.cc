// Sums between nodes that are put together from sends and from sums inside, where a sum was measured as well: two nodes of eight
// A100s, which no fit has seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "sweep/language/library.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"
#include "tools/calibrate/errors/validate_table.h"
#include "tools/calibrate/tables/network_calls.h"

namespace tools {
namespace {

TEST(MeasuredSums, SmallOnesAreTheirParts) {
  const std::filesystem::path data = std::filesystem::path(paths::shared()) / "data";
  if (!std::filesystem::is_directory(data)) GTEST_SKIP() << data << " is not here";
  const auto network = network_calls(data, sweep::Library({paths::specs()}));
  ASSERT_TRUE(network) << engine::to_text(network.mistakes());
  DeviceCalls full = network->checks.front().calls;
  ASSERT_EQ(full.device.name, "a100-80gb-sxm");
  // Up to what 64 sequences of a small model send; larger ones share adapters that nobody named.
  std::erase_if(full.calls, [](const MeasuredCall& one) { return one.call[Size::bytes] > 64e3; });
  ASSERT_GT(full.calls.size(), 5u);
  // Without the sums of this generation.
  engine::Calibration parts = toys::transfer();
  auto& sums = parts.between[std::size_t(engine::CollectiveKind::all_reduce)];
  const auto pooled = *sums.find(engine::ParameterSet::pooled);
  sums = {};
  sums.edit(engine::ParameterSet::pooled) = pooled;
  const double composed = validate_calls(full.calls, {full.device, &parts}).back().errors.median;
  const double fitted =
      validate_calls(full.calls, {full.device, &toys::transfer()}).back().errors.median;
  EXPECT_LT(composed, 0.12);
  EXPECT_LT(composed, fitted);
}

}  // namespace
}  // namespace tools
