// The training scenarios of specs/suite: each runs, gives its metric, and agrees with what can be worked out by hand or was
// published.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/suite_runs.h"

namespace sweep {
namespace {

using TrainingRun = suite::SuiteRun;

std::vector<TrainingRun> run_suite(const std::string& id) {
  std::vector<TrainingRun> runs = suite::run_suite(id);
  for (const TrainingRun& run : runs) EXPECT_GT(run.metrics().iteration_time.value, 0);
  return runs;
}

TEST(TrainingSuite, T1_1_GradientsTravelBesideTheBackwardPass) {
  const auto runs = run_suite("T1.1");
  ASSERT_EQ(runs.size(), 2u);
  const auto& hidden = runs[0].metrics();
  const auto& waiting = runs[1].metrics();
  // 710 MB in a ring of eight at 300 GB/s a way.
  EXPECT_GT(waiting.replica_exposed_time.value, 4.1e-3);
  EXPECT_LT(waiting.replica_exposed_time.value, 2 * 4.1e-3);
  EXPECT_LT(hidden.replica_exposed_time, waiting.replica_exposed_time * 0.5);
  EXPECT_LT(hidden.iteration_time, waiting.iteration_time);
}

TEST(TrainingSuite, T1_2_ZeroSharesOutItsTerms) {
  const auto runs = run_suite("T1.2");
  ASSERT_EQ(runs.size(), 4u);
  for (const TrainingRun& run : runs) {
    const double each = run.metrics().parameters / 8;
    const bool gathered = run.scenario.train.zero == 3;
    EXPECT_NEAR(run.metrics().weights.value, (gathered ? 4 : 16) * each, 1e-3 * each);
    EXPECT_NEAR(run.metrics().gradient_memory.value, 4 * each, 1e-3 * each);
    EXPECT_NEAR(run.metrics().optimizer_memory.value, (gathered ? 8 : 12) * each, 1e-3 * each);
    EXPECT_GT(run.metrics().tokens_per_s, 8 * 5e3);
    EXPECT_LT(run.metrics().tokens_per_s, 8 * 20e3);
  }
}

TEST(TrainingSuite, T1_3_SixtyFourA100sAreHalfUsed) {
  for (const TrainingRun& run : run_suite("T1.3")) {
    EXPECT_GT(run.metrics().model_flops_utilization, 0.3);
    EXPECT_LT(run.metrics().model_flops_utilization, 0.65);
  }
}

TEST(TrainingSuite, T2_1_TensorParallelismTakesItsShare) {
  const auto runs = run_suite("T2.1");
  ASSERT_EQ(runs.size(), 2u);
  for (const TrainingRun& run : runs) {
    const double eight_batches = 8 * 34e-3;
    // Backward, half of it, sums may go on beside gradients of weights.
    EXPECT_GT(run.metrics().tensor_exchange_time.value, 0.5 * eight_batches);
    EXPECT_LT(run.metrics().tensor_exchange_time.value, 2.5 * eight_batches);
  }
  EXPECT_LT(runs[1].metrics().kept_activation_memory, runs[0].metrics().kept_activation_memory);
}

TEST(TrainingSuite, T2_2_ReplicasCostOnlyTheirGradients) {
  const auto runs = run_suite("T2.2");
  ASSERT_EQ(runs.size(), 3u);
  const auto own = [](const TrainingRun& run) {
    return run.metrics().forward_time + run.metrics().backward_time;
  };
  // And that the hungriest of eight devices and more is waited for (device.power_spread).
  EXPECT_GE(own(runs[2]), own(runs[0]));
  EXPECT_LT(own(runs[2]) / own(runs[0]), 1.05);
  for (const TrainingRun& run : runs) {
    EXPECT_GT(run.metrics().model_flops_utilization, 0.2);
    EXPECT_LT(run.metrics().model_flops_utilization, 0.6);
  }
}

TEST(TrainingSuite, T3_1_BubblesFollowTheFormula) {
  for (const TrainingRun& run : run_suite("T3.1")) {
    const double batches = double(run.scenario.train.global_batch);
    // The busiest stage has the logits, so it waits less than equal stages would.
    EXPECT_NEAR(run.metrics().bubble_share, 3 / (batches + 3), 0.12);
  }
}

TEST(TrainingSuite, T3_2_SchedulesDifferInTheirBubbles) {
  const auto runs = run_suite("T3.2");
  ASSERT_EQ(runs.size(), 8u);
  for (std::size_t batch = 0; batch < 2; ++batch) {
    const double equal = 7 / (double(runs[batch].scenario.train.global_batch) + 7);
    EXPECT_NEAR(runs[batch].metrics().bubble_share, equal, 0.06);
    EXPECT_NEAR(runs[2 + batch].metrics().bubble_share, equal, 0.06);
    EXPECT_LT(runs[4 + batch].metrics().bubble_share, runs[2 + batch].metrics().bubble_share);
    EXPECT_LT(runs[6 + batch].metrics().bubble_share, runs[2 + batch].metrics().bubble_share);
  }
}

TEST(TrainingSuite, T4_1_NarrowProductsAreNotTwiceAsFast) {
  const auto runs = run_suite("T4.1");
  ASSERT_EQ(runs.size(), 2u);
  const double gain = runs[0].metrics().iteration_time / runs[1].metrics().iteration_time;
  EXPECT_GT(gain, 1.1);
  EXPECT_LT(gain, 1.8);
  EXPECT_EQ(runs[0].metrics().cast_time.value, 0);
  EXPECT_GT(runs[1].metrics().cast_time / runs[1].metrics().iteration_time, 0.01);
}

TEST(TrainingSuite, T4_2_AdaptersFitWhereWeightsDoNot) {
  const auto runs = run_suite("T4.2");
  ASSERT_EQ(runs.size(), 3u);
  const auto &full = runs[0].metrics(), &lora = runs[1].metrics(), &qlora = runs[2].metrics();
  EXPECT_GT(full.peak_memory.value, 138e9);
  EXPECT_GT(lora.peak_memory.value, 17e9);
  EXPECT_LT(lora.peak_memory.value, 40e9);
  EXPECT_LT(qlora.peak_memory, lora.peak_memory);
  EXPECT_GT(lora.tokens_per_s, full.tokens_per_s);
  EXPECT_LT(qlora.tokens_per_s, lora.tokens_per_s);
}

// Korthikanti et al., table 5: sequence parallelism and selective recomputation make steps 29 to 32% faster than full
// recomputation: 1.42 to 1.10 s, 18.13 to 13.75 s, 49.05 to 37.83 s and 94.42 to 71.49 s. The smallest, on one node, comes out 13 and
// 21% too fast, the largest 1 and 3%.
TEST(TrainingSuite, T4_3_RecomputationAsPublished) {
  const auto runs = run_suite("T4.3");
  ASSERT_EQ(runs.size(), 12u);
  const double published[][2] = {{1.42, 1.10}, {18.13, 13.75}, {49.05, 37.83}, {94.42, 71.49}};
  for (std::size_t size = 0; size < 4; ++size) {
    const auto &full = runs[2 * size].metrics(), &selective = runs[2 * size + 1].metrics();
    EXPECT_NEAR(full.iteration_time / selective.iteration_time,
                published[size][0] / published[size][1], 0.15);
    EXPECT_NEAR(full.iteration_time.value / published[size][0], 1, 0.22);
    EXPECT_NEAR(selective.iteration_time.value / published[size][1], 1, 0.22);
  }
}

TEST(TrainingSuite, T4_4_SkewMakesExpertsWait) {
  const auto runs = run_suite("T4.4");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_GT(runs[1].metrics().iteration_time, runs[0].metrics().iteration_time);
  for (const TrainingRun& run : runs) {
    // 59 MB, four times a layer and once more recomputed twice, at 450 GB/s: 0.8 ms of 32 layers and 8 batches each.
    EXPECT_GT(run.metrics().expert_exchange_time.value, 6 * 32 * 8 * 59e6 / 450e9);
    EXPECT_LT(run.metrics().expert_exchange_time / run.metrics().iteration_time, 0.3);
  }
}

TEST(TrainingSuite, T4_5_LongContextsAreShared) {
  const auto runs = run_suite("T4.5");
  ASSERT_EQ(runs.size(), 3u);
  const auto &ring = runs[0].metrics(), &gather = runs[1].metrics();
  EXPECT_LT(ring.context_exchange_time, gather.context_exchange_time);
  for (const TrainingRun& run : runs) EXPECT_LT(run.metrics().peak_memory.value, 80e9);
}

TEST(TrainingSuite, X6_PhasesOfReinforcementLearning) {
  const auto runs = run_suite("X6");
  ASSERT_EQ(runs.size(), 4u);
  const auto sum = [](const engine::Metrics& figures) {
    return figures.rollout_time + figures.scoring_time + figures.update_time +
           figures.weight_transfer_time;
  };
  const auto &moved = runs[0].metrics(), &kept = runs[1].metrics(), &apart = runs[2].metrics(),
             &beside = runs[3].metrics();
  for (const auto* figures : {&moved, &kept, &apart}) {
    EXPECT_NEAR(sum(*figures) / figures->iteration_time, 1, 1e-9);
  }
  // Half of 16 GB of weights, and all of them, over an adapter of 50 GB/s, of which sends reach 0.73.
  EXPECT_NEAR(kept.weight_transfer_time.value, 0.16 / 0.73, 0.01);
  EXPECT_NEAR(apart.weight_transfer_time.value, 0.32 / 0.73, 0.01);
  EXPECT_GT(moved.weight_transfer_time, kept.weight_transfer_time);
  // Beside the update, only the longer of the two counts.
  EXPECT_NEAR((std::max(beside.rollout_time, beside.scoring_time + beside.update_time) +
               beside.weight_transfer_time) /
                  beside.iteration_time,
              1, 1e-9);
  // 1,024 samples of 1,536 tokens are six batches of 64 sequences of 4,096.
  EXPECT_EQ(moved.update_steps, 6);
}

}  // namespace
}  // namespace sweep
