// Experts that every token goes through, in a stream of their own beside those that tokens choose: what they start with is hidden,
// what memory and arithmetic need is not.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/random_load.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

Outcome outcome_of(const Scenario& point) {
  const Outcome outcome = evaluate(point, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

Scenario decode(std::int64_t batch) {
  Scenario point = toys::scenario();
  point.device = toys::shipped("devices", "h100-sxm").device;
  point.device.memory_capacity = Bytes{1e13};
  point.model = toys::shipped("models", "deepseek-v3").model;
  point.calibration.tier = TierChoice::transfer;
  point.step = {.phase = StepPhase::decode, .batch = batch, .context = 2000};
  return point;
}

Scenario beside(Scenario point) {
  point.serving.shared_experts = SharedExperts::beside;
  return point;
}

bool is_shared(const KernelRow& row) {
  return row.op == OpName::shared_gate_up || row.op == OpName::shared_activation ||
         row.op == OpName::shared_down;
}

TEST(SharedExperts, BesideOthersAddWhatMemoryAndArithmeticNeed) {
  for (std::uint64_t number = 0; number < 60; ++number) {
    toys::Dice dice(81'000 + number);
    Scenario point = decode(dice.whole(1, 240));  // graphs of more have 256
    point.parallel.tp = std::int64_t{1} << dice.whole(0, 3);
    if (dice.chance(0.3)) point.calibration.tier = TierChoice::roofline;
    const Outcome one = outcome_of(point), other = outcome_of(beside(point));
    ASSERT_EQ(one.kernels.size(), other.kernels.size());
    double saved = 0;
    for (std::size_t i = 0; i < one.kernels.size(); ++i) {
      const KernelRow &after = one.kernels[i], &row = other.kernels[i];
      ASSERT_EQ(after.op, row.op);
      EXPECT_EQ(after.work.time, row.work.time) << "the device is busy for as long";
      EXPECT_EQ(after.work.bytes, row.work.bytes);
      EXPECT_LE(row.work.energy, after.work.energy) << "what the board draws at rest is drawn once";
      if (!is_shared(row)) {
        EXPECT_EQ(after.work, row.work);
        continue;
      }
      saved += row.work.hidden.value;
      EXPECT_GE(row.work.exposed().value, 0);
      if (row.op == OpName::shared_activation) continue;  // its values may come from the cache
      const Seconds read = row.work.bytes / point.device.memory_bandwidth;
      EXPECT_GE(row.work.exposed().value, 0.4 * read.value) << number;
      EXPECT_GE(row.work.exposed().value,
                (row.work.flops / point.device.peak.fp8).value * (1 - 1e-9));
      const double adds = row.work.exposed().value;
      EXPECT_LE(row.work.low.value, adds * (1 + 1e-12));
      EXPECT_GE(row.work.high.value, adds * (1 - 1e-12));
    }
    EXPECT_GT(saved, 0) << number;
    EXPECT_NEAR(one.metrics.step_time.value - other.metrics.step_time.value, saved, 1e-9) << number;
  }
}

TEST(SharedExperts, OfManyTokensRunAfterOthers) {
  for (const std::int64_t batch : {256, 300, 1000}) {
    EXPECT_EQ(outcome_of(decode(batch)).metrics.step_time,
              outcome_of(beside(decode(batch))).metrics.step_time);
  }
}

TEST(SharedExperts, OfWhichAModelHasNoneChangeNothing) {
  Scenario point = decode(8);
  point.model.moe.shared_intermediate = 0;
  EXPECT_EQ(outcome_of(point).metrics.step_time, outcome_of(beside(point)).metrics.step_time);
}

// Where halves of a step hide exchanges behind everything that computes, shared experts are part of that.
TEST(SharedExperts, InHalvesOfAStepRunAsTheOthersDo) {
  Scenario point = decode(64);
  point.parallel.dp = point.parallel.ep = 8;
  point.serving.two_batch_overlap = true;
  EXPECT_EQ(outcome_of(point).metrics.step_time, outcome_of(beside(point)).metrics.step_time);
  point.serving.two_batch_overlap = false;
  EXPECT_LT(outcome_of(beside(point)).metrics.step_time, outcome_of(point).metrics.step_time);
}

TEST(SharedExperts, AreBesideOthersUnderTheEnginesThatDoSo) {
  for (const char* name : {"vllm-v1", "vllm-v1-small", "tensorrt-llm"}) {
    EXPECT_EQ(toys::shipped("serving", name).serving.shared_experts, SharedExperts::beside) << name;
  }
  for (const char* name : {"vllm-v1-2025", "vllm-v0", "tensorrt-llm-2024"}) {
    EXPECT_EQ(toys::shipped("serving", name).serving.shared_experts, SharedExperts::after) << name;
  }
}

}  // namespace
}  // namespace engine
