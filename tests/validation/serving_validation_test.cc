// Errors against real serving runs must not grow beyond what was reached. The ceilings are a little above
// the figures that `llmsweep validate serving` prints.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "tests/support/calibrations.h"
#include "tests/support/paths.h"
#include "tools/validate_serving/argonne_cases.h"
#include "tools/validate_serving/compare.h"
#include "tools/validate_serving/overview_cases.h"
#include "tools/validate_serving/silicon_cases.h"
#include "tools/validate_serving/validate_serving.h"

namespace tools {
namespace {

const sweep::Library kLibrary({paths::specs()});

class ServingRuns : public testing::Test {
 protected:
  void SetUp() override {
    data_ = std::filesystem::path(paths::shared()) / "data";
    if (!std::filesystem::is_directory(data_ / "silicon_e2e") ||
        !std::filesystem::is_directory(data_ / "llmservingsim_vllm_runs")) {
      GTEST_SKIP() << data_ << " has no serving runs: nothing to validate against";
    }
  }

  std::filesystem::path data_;
};

// The error of one figure of one run, signed.
double error_of(const ComparedCase& compared, std::string_view name) {
  for (const Figure& figure : compared.figures) {
    if (figure.name == name) return figure.predicted / figure.measured - 1;
  }
  ADD_FAILURE() << "no figure " << name << " " << compared.failure;
  return 1;
}

TEST_F(ServingRuns, ClosedLoopsOnH100) {
  const auto cases = silicon_cases(data_ / "silicon_e2e" / "h100_sxm.csv", kLibrary);
  ASSERT_TRUE(cases) << engine::to_text(cases.mistakes());
  const auto resources = transfer_resources(kLibrary);
  ASSERT_TRUE(resources) << engine::to_text(resources.mistakes());
  std::vector<ComparedCase> all, llama_70b, two_pools, plain_sglang;
  for (const ServedCase& served : *cases) {
    if (!served.left_out.empty()) continue;
    ComparedCase compared = compare_means(served, *resources);
    EXPECT_EQ(compared.failure, "") << served.id;
    if (served.scenario.prefill.present) {
      const bool plain = compared.scenario->speculation.tokens == 0;
      if (plain && served.engine == "sglang") plain_sglang.push_back(compared);
      two_pools.push_back(std::move(compared));
      continue;
    }
    all.push_back(std::move(compared));
    if (served.scenario.model.name == "llama-3.1-70b") llama_70b.push_back(all.back());
  }
  EXPECT_EQ(cases->size(), 917u);
  EXPECT_EQ(all.size(), 782u);
  EXPECT_LT(median_error(all, "tpot_mean_s"), 0.065);
  EXPECT_LT(median_error(all, "ttft_mean_s"), 0.14);
  EXPECT_LT(median_error(all, "output_tokens_per_s"), 0.055);
  EXPECT_EQ(two_pools.size(), 100u);
  EXPECT_LT(median_error(two_pools, "tpot_mean_s"), 0.18);
  EXPECT_LT(median_error(two_pools, "output_tokens_per_s"), 0.18);
  // Where nothing is open but which of the recipes a row is of.
  EXPECT_GE(plain_sglang.size(), 28u);
  EXPECT_LT(median_error(plain_sglang, "tpot_mean_s"), 0.05);
  EXPECT_LT(median_error(plain_sglang, "output_tokens_per_s"), 0.06);
  // Rows whose load and engine settings are known best.
  EXPECT_LT(median_error(llama_70b, "tpot_mean_s"), 0.05);
  EXPECT_LT(median_error(llama_70b, "ttft_mean_s"), 0.07);
  EXPECT_LT(median_error(llama_70b, "output_tokens_per_s"), 0.05);
}

TEST_F(ServingRuns, SaturatedThroughput) {
  const auto cases = overview_cases(data_ / "trtllm_perf_overview", kLibrary);
  ASSERT_TRUE(cases) << engine::to_text(cases.mistakes());
  const auto resources = transfer_resources(kLibrary);
  ASSERT_TRUE(resources) << engine::to_text(resources.mistakes());
  std::vector<ComparedCase> dense, mixtures;
  for (const ServedCase& served : *cases) {
    EXPECT_EQ(served.left_out, "") << served.id;
    auto& group = served.scenario.model.is_moe() ? mixtures : dense;
    group.push_back(compare_throughput(served, *resources));
    EXPECT_EQ(group.back().failure, "") << served.id;
  }
  EXPECT_EQ(dense.size(), 22u);
  EXPECT_LT(median_error(dense, "output_tokens_per_s"), 0.07);
  EXPECT_EQ(mixtures.size(), 35u);
  EXPECT_LT(median_error(mixtures, "output_tokens_per_s"), 0.16);
}

TEST_F(ServingRuns, BatchesOfTwoEnginesOnTwoGenerations) {
  const auto cases =
      argonne_cases(data_ / "argonne_llm_inference_bench" / "results_a100_h100.csv", kLibrary);
  ASSERT_TRUE(cases) << engine::to_text(cases.mistakes());
  const auto resources = transfer_resources(kLibrary);
  ASSERT_TRUE(resources) << engine::to_text(resources.mistakes());
  std::vector<ComparedCase> compared;
  for (const ServedCase& served : *cases) {
    if (!served.left_out.empty()) continue;
    compared.push_back(compare_throughput(served, *resources));
    EXPECT_EQ(compared.back().failure, "") << served.id;
  }
  EXPECT_EQ(cases->size(), 1786u);
  EXPECT_EQ(compared.size(), 1018u);
  EXPECT_LT(median_error(compared, "output_tokens_per_s"), 0.075);
}

TEST_F(ServingRuns, RecordedLoads) {
  const auto runs = vllm_runs(data_, kLibrary);
  ASSERT_TRUE(runs) << engine::to_text(runs.mistakes());
  ASSERT_FALSE(runs->empty());
  for (const MeasuredRun& run : *runs) {
    const auto resources = replay_resources(run, kLibrary);
    ASSERT_TRUE(resources) << engine::to_text(resources.mistakes());
    const ComparedCase transfer = compare_replay(run, {}, *resources);
    EXPECT_LT(std::abs(error_of(transfer, "tpot_mean_s")), 0.04) << run.served.id;
    EXPECT_LT(std::abs(error_of(transfer, "output_tokens_per_s")), 0.03) << run.served.id;
    if (resources->calibrations.find(run.served.scenario.device.name) == nullptr) continue;
    const ComparedCase measured =
        compare_replay(run, {.tier = engine::TierChoice::measured}, *resources);
    EXPECT_LT(std::abs(error_of(measured, "tpot_mean_s")), 0.04) << run.served.id;
    EXPECT_LT(std::abs(error_of(measured, "output_tokens_per_s")), 0.03) << run.served.id;
  }
}

}  // namespace
}  // namespace tools
