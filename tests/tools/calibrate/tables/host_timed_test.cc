#include "tools/calibrate/tables/host_timed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/support/toys.h"
#include "tools/calibrate/tables/predict.h"
#include "tools/calibrate/tables/trusted_rows.h"

namespace tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kLaunch = 4e-6;

// A kernel by what it takes for a call that the device could do in `roofline` seconds.
struct Maker {
  const char* impl;
  Format format;
  std::function<double(double roofline)> seconds;
};

double well_made(double roofline) { return std::max(kLaunch, 1.2 * roofline); }
double behind_a_host(double roofline) { return std::max(40 * kLaunch, 1.2 * roofline); }
double many_times_slower(double roofline) { return 20 * roofline; }

// Products from less than a launch to far more than any host takes.
KernelTable table_of(const std::vector<Maker>& makers) {
  const engine::Device device = toys::gpu();
  const Predictor roofline(device, nullptr);
  KernelTable table;
  for (const Maker& maker : makers) {
    table.impls.emplace_back(maker.impl);
    for (double m = 1; m <= 32768; m *= 8) {
      for (double n = 256; n <= 65536; n *= 4) {
        for (double k = 256; k <= 16384; k *= 4) {
          KernelRecord record{.call = {.dtype = maker.format},
                              .impl = std::uint32_t(table.impls.size() - 1),
                              .row = std::uint32_t(table.records.size())};
          record.call[Size::m] = m;
          record.call[Size::n] = n;
          record.call[Size::k] = k;
          record.seconds = maker.seconds(roofline(record.call).seconds);
          table.records.push_back(record);
        }
      }
    }
  }
  return table;
}

std::vector<std::string> marked(const KernelTable& table) {
  std::vector<std::string> names;
  for (const HostTimed& kernel : host_timed(table, toys::gpu())) {
    names.push_back(table.impls[kernel.kind.impl]);
  }
  return names;
}

TEST(HostTimed, IsWhatTakesTheSameWhateverTheShapeWhileOthersAreMuchFaster) {
  const KernelTable table = table_of({{"vllm_1:host", Format::fp8_block, behind_a_host},
                                      {"trtllm_1:good", Format::fp8_block, well_made}});
  EXPECT_THAT(marked(table), ElementsAre("vllm_1:host"));
}

TEST(HostTimed, IsToldByKernelsOfOtherFormatsToo) {
  const KernelTable table = table_of({{"vllm_1:host", Format::fp8_block, behind_a_host},
                                      {"vllm_1:good", Format::bf16, well_made}});
  EXPECT_THAT(marked(table), ElementsAre("vllm_1:host"));
}

TEST(HostTimed, IsNeitherASlowKernelNorALaunchThatAllPayNorWhatNobodyElseDoes) {
  EXPECT_THAT(marked(table_of({{"vllm_1:slow", Format::fp8_block, many_times_slower},
                               {"trtllm_1:good", Format::fp8_block, well_made}})),
              IsEmpty());
  EXPECT_THAT(marked(table_of({{"vllm_1:good", Format::fp8_block, well_made},
                               {"trtllm_1:good", Format::fp8_block, well_made}})),
              IsEmpty());
  EXPECT_THAT(marked(table_of({{"vllm_1:alone", Format::fp8_block, behind_a_host}})), IsEmpty());
}

TEST(HostTimed, RowsAreLeftOutOfAnEnginesCallsWithTheReason) {
  const KernelTable table = table_of(
      {{"vllm_1:host", Format::fp8_block, behind_a_host}, {"vllm_1:good", Format::fp8, well_made}});
  const auto kernels = host_timed(table, toys::gpu());
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(2 * kernels.front().rows, table.records.size());
  EXPECT_EQ(engine_calls(table, "vllm_1").size(), table.records.size());
  const auto left = engine_calls(table, "vllm_1", kernels);
  EXPECT_EQ(2 * left.size(), table.records.size());
  EXPECT_TRUE(std::ranges::all_of(
      left, [](const MeasuredCall& call) { return call.call.dtype == Format::fp8; }));
  EXPECT_THAT(remarks_on(kernels, table),
              ElementsAre(HasSubstr("rows of vllm_1:host (gemm, fp8_block): its short calls take "
                                    "160 us although their work differs")));
}

}  // namespace
}  // namespace tools
