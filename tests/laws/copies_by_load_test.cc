// Experts over many devices: engines place second copies by load, so that wider or narrower is never a cliff, and a row says how many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "engine/evaluate.h"
#include "engine/model/expert_places.h"
#include "tests/support/shipped.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

Scenario wide(std::int64_t devices, StepPhase phase) {
  static const Scenario base = [] {
    Scenario scenario = toys::shipped("models", "deepseek-v3");
    scenario.device = toys::shipped("devices", "h200-sxm").device;
    scenario.cluster = toys::shipped("clusters", "dgx-h200").cluster;
    scenario.cluster.nodes = 64;
    scenario.quant = toys::shipped("models", "deepseek-v3").quant;
    return scenario;
  }();
  Scenario scenario = base;
  scenario.parallel.dp = scenario.parallel.ep = devices;
  scenario.step = {.phase = phase, .batch = 128, .context = 3000};
  if (phase == StepPhase::prefill) scenario.step = {.phase = phase, .batch = 2, .prompt = 4096};
  return scenario;
}

Outcome outcome_of(const Scenario& scenario) {
  Outcome outcome = evaluate(scenario, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

// With as much work on each device, and whatever a router favours.
TEST(CopiesByLoad, NoWidthIsACliff) {
  for (const StepPhase phase : {StepPhase::decode, StepPhase::prefill}) {
    for (const double skew : {0.3, 1.0}) {
      std::optional<double> before;
      for (std::int64_t devices = 8; devices <= 320; devices += 4) {
        Scenario scenario = wide(devices, phase);
        scenario.model.moe.skew = skew;
        const double time = outcome_of(scenario).metrics.step_time.value;
        if (before) {
          EXPECT_LT(std::max(time / *before, *before / time), 1.25)
              << name_of(phase) << " " << devices << " devices, skew " << skew;
        }
        before = time;
      }
    }
  }
}

// Two models more: 128 experts of which eight are chosen, and few large ones.
TEST(CopiesByLoad, NoWidthIsACliffForOtherModels) {
  for (const char* name : {"qwen3-235b-a22b", "mixtral-8x22b"}) {
    const ModelSpec model = toys::shipped("models", name).model;
    double narrowest = 0;
    for (const std::int64_t devices : {8, 16, 32, 64, 128}) {
      Scenario scenario = wide(devices, StepPhase::decode);
      scenario.model = model;
      const double time = outcome_of(scenario).metrics.step_time.value;
      if (devices == 16) narrowest = time;
      if (devices > 16) {
        EXPECT_LT(time, 1.5 * narrowest) << name << " " << devices;
      }
    }
  }
}

TEST(CopiesByLoad, ArePublishedDeploymentsOfDeepSeek) {
  const ModelSpec model = toys::shipped("models", "deepseek-v3").model;
  const auto places = [&](std::int64_t devices) {
    return expert_places(model, {.dp = devices, .ep = devices});
  };
  // SGLang and DeepSeek: 288 on 32 devices and on 72; TensorRT-LLM: 288 on 36; none inside one host.
  EXPECT_EQ(places(32), (ExpertPlaces{.placed = 288, .redundant = 32, .local = 9}));
  EXPECT_EQ(places(36), (ExpertPlaces{.placed = 288, .redundant = 32, .local = 8}));
  EXPECT_EQ(places(72), (ExpertPlaces{.placed = 288, .redundant = 32, .local = 4}));
  EXPECT_EQ(places(8), (ExpertPlaces{.placed = 256, .redundant = 0, .local = 32}));
  // On 144 devices DeepSeek has 288, too, which is enough where routers have few favourites, as in text.
  ModelSpec text = model;
  text.moe.skew = 0.3;
  EXPECT_EQ(expert_places(text, {.dp = 144, .ep = 144}).placed, 288);
}

TEST(CopiesByLoad, AreNoneWhereExpertsReplaceSplittingOrNobodyBalances) {
  const ModelSpec model = toys::shipped("models", "deepseek-v3").model;
  EXPECT_EQ(expert_places(model, {.tp = 16, .ep = 16}).redundant, 0);
  const auto fewest = [&](std::int64_t devices) {
    return expert_places(model,
                         {.dp = devices, .ep = devices, .expert_copies = ExpertCopies::fewest})
        .redundant;
  };
  EXPECT_EQ(fewest(64), 0);
  EXPECT_EQ(fewest(72), 32);
}

// The fullest of the devices that share experts gets at most a third more than the mean, as far as popularity goes.
TEST(CopiesByLoad, LeaveNoDeviceMuchFuller) {
  for (const char* name : {"deepseek-v3", "qwen3-235b-a22b", "qwen3-30b-a3b"}) {
    const ModelSpec model = toys::shipped("models", name).model;
    for (std::int64_t devices = 9; devices <= 2 * model.moe.experts; ++devices) {
      const ExpertPlaces places = expert_places(model, {.dp = devices, .ep = devices});
      EXPECT_LE(most_popular_device(model, places), 4.0 / 3 + 1e-9) << name << " " << devices;
      EXPECT_GE(most_popular_device(model, places), 1) << name << " " << devices;
      EXPECT_EQ(places.local * devices, places.placed) << name << " " << devices;
    }
  }
}

// A row says what was used, whoever chose it, and how full the fullest device is.
TEST(CopiesByLoad, ARowSaysHowManyThereAre) {
  const auto row = [](std::int64_t devices, ExpertCopies copies, std::int64_t stated) {
    Scenario scenario = wide(devices, StepPhase::decode);
    scenario.parallel.expert_copies = copies;
    scenario.parallel.redundant_experts = stated;
    return outcome_of(scenario).metrics;
  };
  constexpr std::int64_t automatic = Parallelism{}.redundant_experts;
  EXPECT_EQ(row(64, ExpertCopies::by_load, automatic).second_copies, 64);
  EXPECT_EQ(row(64, ExpertCopies::fewest, automatic).second_copies, 0);
  EXPECT_EQ(row(64, ExpertCopies::by_load, 0).second_copies, 0);  // who states none has none
  EXPECT_EQ(row(64, ExpertCopies::by_load, 128).second_copies, 128);
  EXPECT_GT(row(64, ExpertCopies::fewest, automatic).expert_imbalance, 2);
  EXPECT_GT(row(64, ExpertCopies::by_load, 0).expert_imbalance, 2);
  EXPECT_LT(row(64, ExpertCopies::by_load, automatic).expert_imbalance, 4.0 / 3);
  Scenario dense = wide(8, StepPhase::decode);
  dense.parallel = {.tp = 8};
  EXPECT_TRUE(std::isnan(outcome_of(dense).metrics.second_copies));
}

TEST(CopiesByLoad, ThatDoNotFitAreNamed) {
  Scenario scenario = wide(16, StepPhase::decode);
  scenario.step.batch = 1;
  scenario.device.memory_capacity = Bytes{70e9};
  const Outcome outcome = evaluate(scenario, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_TRUE(outcome.reason.ends_with("; parallel.expert_copies: fewest would fit"))
      << outcome.reason;
  scenario.parallel.expert_copies = ExpertCopies::fewest;
  EXPECT_EQ(evaluate(scenario, toys::transfer_resources()).status, Status::ok);
}

// Copies of an expert would be trained apart: a training job has none, on however many devices.
TEST(CopiesByLoad, AreNotTrained) {
  Scenario scenario = toys::training();
  scenario.model = toys::mixture();
  scenario.parallel = {.dp = 16, .ep = 16};
  const Outcome by_load = evaluate(scenario);
  ASSERT_EQ(by_load.status, Status::ok) << by_load.reason;
  scenario.parallel.expert_copies = ExpertCopies::fewest;
  const Outcome fewest = evaluate(scenario);
  EXPECT_EQ(by_load.kernels, fewest.kernels);
  EXPECT_EQ(by_load.metrics.weights, fewest.metrics.weights);
}

}  // namespace
}  // namespace engine
