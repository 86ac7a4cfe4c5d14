// Second copies of popular experts: placed by loads of the past, they leave something to wait for.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/model/expert_places.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

// DeepSeek-V3's experts on 32 devices, with so many second copies.
Moe experts(std::int64_t second_copies, double drift) {
  return {.tokens = 4096 * 32,
          .hidden = 7168,
          .intermediate = 2048,
          .top_k = 8,
          .experts = 256 + second_copies,
          .redundant = second_copies,
          .local_experts = (256 + second_copies) / 32,
          .exchanged = true,
          .skew = 1,
          .drift = drift};
}

TEST(SecondCopies, LeaveLessTheMoreThereAre) {
  for (const double drift : {0.05, 0.1, 0.3}) {
    double before = fullest_device(experts(0, drift), 1);
    for (std::int64_t copies = 32; copies <= 256; copies += 32) {
      const double fullest = fullest_device(experts(copies, drift), 1);
      EXPECT_LT(fullest, before) << copies;
      EXPECT_GT(fullest, fullest_device(experts(copies, 0), 1)) << copies;
      before = fullest;
    }
  }
}

// Nine copies of about equal loads that each moved by a tenth: their sum moved by a thirtieth, and by twice that on the fullest of
// 32. Copies of unequal loads move it more, but not twice as much.
TEST(SecondCopies, LeaveWhatTheirLoadsMovedBy) {
  const double excess = fullest_device(experts(32, 0.1), 1) - 1;
  EXPECT_GT(excess, 2 * 0.1 / 3);
  EXPECT_LT(excess, 2 * 2 * 0.1 / 3);
}

// Placed by the loads themselves, or where all experts are alike, they leave what chance does.
TEST(SecondCopies, PlacedByTheLoadsLeaveChance) {
  EXPECT_NEAR(fullest_device(experts(32, 0), 1), fullest_device(experts(32, 0), 0), 1e-12);
  EXPECT_NEAR(fullest_device(experts(32, 0.3), 0), fullest_device(experts(32, 0), 0), 1e-12);
}

// They never leave more than no copies do.
TEST(SecondCopies, NeverHarm) {
  for (const double drift : {0.1, 1.0, 100.0}) {
    EXPECT_LE(fullest_device(experts(32, drift), 1), fullest_device(experts(0, drift), 1));
  }
}

// Steps follow: between no copies and copies that are always right lie those that there are.
TEST(SecondCopies, OfTheLibraryLieBetween) {
  Scenario scenario = toys::shipped("models", "deepseek-v3");
  scenario.device = toys::shipped("devices", "h100-sxm").device;
  scenario.parallel = {.dp = 32, .ep = 32, .expert_copies = ExpertCopies::fewest};
  scenario.quant.weights = scenario.quant.activations = Dtype::fp8;
  scenario.step = {.phase = StepPhase::prefill, .batch = 4, .prompt = 4096};
  scenario.model.moe.drift = 0.1;
  const auto time = [&] {
    const Outcome outcome = evaluate(scenario, toys::transfer_resources());
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics.step_time;
  };
  const Seconds none = time();
  scenario.parallel.redundant_experts = 32;
  const Seconds some = time();
  scenario.parallel.redundant_experts = 64;
  const Seconds more = time();
  scenario.parallel.redundant_experts = 32;
  scenario.model.moe.drift = 0;
  const Seconds perfect = time();
  EXPECT_LT(some, none);
  EXPECT_LT(more, some);
  EXPECT_LT(perfect, some);
}

}  // namespace
}  // namespace engine
