// Training runs that somebody made and published fit their devices by our count, too, with the settings that their sources state.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "engine/evaluate.h"
#include "sweep/language/library.h"
#include "tests/support/paths.h"
#include "tests/support/shipped.h"
#include "tools/validate_training/training_runs.h"

namespace {

namespace fs = std::filesystem;

class PublishedTraining : public testing::Test {
 protected:
  void SetUp() override {
    data_ = fs::path(paths::shared()) / "data";
    if (!fs::exists(data_ / "published_mlperf_training")) {
      GTEST_SKIP() << data_ << " is not there: published runs cannot be compared";
    }
    auto runs = tools::training_runs(data_, sweep::Library({paths::specs("")}));
    ASSERT_TRUE(runs) << engine::to_text(runs.mistakes());
    runs_ = std::move(*runs);
  }

  fs::path data_;
  std::vector<tools::TrainingRun> runs_;
};

TEST_F(PublishedTraining, Fits) {
  std::map<std::string, int> rows;
  for (const tools::TrainingRun& run : runs_) {
    if (!run.left_out.empty()) continue;
    ++rows[run.table];
    const engine::Outcome outcome = engine::evaluate(run.scenario, toys::transfer_resources());
    EXPECT_EQ(outcome.status, engine::Status::ok)
        << run.table << ", " << run.name << ": " << outcome.reason;
  }
  EXPECT_EQ(rows["train_megatron_bridge"], 26);
  EXPECT_EQ(rows["train_mosaicml_mpt"], 97);
  EXPECT_EQ(rows["published_mlperf_training"], 59);
  EXPECT_EQ(rows["published_maxtext_tpu"], 30);
  EXPECT_EQ(rows["published_intel_gaudi"], 5);
}

// What makes runs fit is what their sources state, not a generous count: without it some do not.
TEST_F(PublishedTraining, DoesNotFitWithoutWhatSourcesState) {
  std::map<std::string, int> refused;
  const auto count = [&](const std::string& without, engine::Scenario scenario) {
    const auto outcome = engine::evaluate(scenario, toys::transfer_resources());
    refused[without] += outcome.reason_class == engine::ReasonClass::memory;
  };
  for (const tools::TrainingRun& run : runs_) {
    if (!run.left_out.empty()) continue;
    engine::Scenario scenario = run.scenario;
    scenario.train.narrow_activation_inputs = false;
    count("inputs in fp8", scenario);
    scenario = run.scenario;
    scenario.train.gathered_unit = engine::GatheredUnit::layer;
    scenario.train.gradient_buffers = engine::GradientBuffers::kept;
    count("what XLA does", scenario);
    scenario = run.scenario;
    scenario.train.transpose_cache = true;
    count("weights in one layout", scenario);
    scenario = run.scenario;
    scenario.train.recompute = engine::Recompute::none;
    count("computing again", scenario);
  }
  EXPECT_GE(refused["inputs in fp8"], 2);
  EXPECT_GE(refused["what XLA does"], 6);
  EXPECT_GE(refused["weights in one layout"], 5);
  EXPECT_GE(refused["computing again"], 30);
}

// The Llama 3 Herd of Models, table 4: 8,192 H100s, 32 micro-batches a replica, nothing computed again; section 3.3.2: input and output
// tensors of stages are freed as soon as nothing needs them. So their norms start backward passes from what products keep.
TEST(PublishedModels, Llama405BOn8192Devices) {
  engine::Scenario scenario = toys::shipped("models", "llama-3.1-405b");
  scenario.device = toys::shipped("devices", "h100-sxm").device;
  scenario.task = engine::Task::train;
  scenario.parallel = {.tp = 8, .pp = 16, .dp = 64};
  scenario.train = {.sequence = 8192,
                    .micro_batch = 1,
                    .global_batch = 2048,
                    .schedule = engine::Schedule::interleaved,
                    .virtual_stages = 8,
                    .zero = 2,
                    .sequence_parallel = true,
                    .norms_from_outputs = true};
  const auto outcome = engine::evaluate(scenario, toys::transfer_resources());
  EXPECT_EQ(outcome.status, engine::Status::ok) << outcome.reason;
}

// DeepSeek-V3's report: 2,048 H800s, 16 stages of DualPipe, experts over 64 devices, ZeRO 1; section 3.2.3: norms and what latents expand
// are computed again; 3.3: moments in bf16, inputs of the gates kept in fp8.
TEST(PublishedModels, DeepSeekV3) {
  engine::Scenario scenario = toys::shipped("models", "deepseek-v3");
  scenario.device = toys::shipped("devices", "h800-sxm").device;
  scenario.task = engine::Task::train;
  scenario.parallel = {.pp = 16, .dp = 128, .ep = 64};
  scenario.quant.weights = scenario.quant.activations = engine::Dtype::fp8;
  scenario.quant.group = 128;
  scenario.train = {.sequence = 4096,
                    .micro_batch = 1,
                    .global_batch = 15360,
                    .schedule = engine::Schedule::dualpipe,
                    .recompute = engine::Recompute::up_projections,
                    .moments = engine::StateFormat::bf16,
                    .zero = 1,
                    .narrow_dispatch = true,
                    .batch_overlap = true,
                    .narrow_activation_inputs = true};
  const auto outcome = engine::evaluate(scenario, toys::transfer_resources());
  EXPECT_EQ(outcome.status, engine::Status::ok) << outcome.reason;
}

}  // namespace
