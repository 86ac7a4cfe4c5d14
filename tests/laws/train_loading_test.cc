// Sequences on their way to the devices that train on them.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/evaluate.h"
#include "tests/support/toys.h"
#include "tests/support/training_toy.h"

namespace engine {
namespace {

using toys::figures_of;

// Sixteen sequences on four replicas: each has four of a step.
Scenario fed(Seconds sequence_time, std::int64_t workers) {
  Scenario scenario = toys::training();
  scenario.parallel.dp = 4;
  scenario.train.loading = {.sequence_time = sequence_time, .workers = workers};
  return scenario;
}

TEST(Loading, HidesBehindAStepThatTakesLonger) {
  const Seconds step = figures_of(fed(Seconds{0}, 1)).iteration_time;
  for (const std::int64_t workers : {1, 2, 8}) {
    for (const double share : {0.1, 0.9, 1.5, 10.0}) {
      const Seconds takes = step * share;
      const Metrics figures = figures_of(fed(takes * double(workers) / 4, workers));
      EXPECT_NEAR(figures.iteration_time / std::max(step, takes), 1, 1e-9) << share;
      EXPECT_NEAR((figures.iteration_time - figures.loading_time) / step, 1, 1e-9);
    }
  }
}

// Without workers the process that trains prepares sequences, and nothing goes on beside.
TEST(Loading, WithoutWorkersIsWaitedFor) {
  const Seconds step = figures_of(fed(Seconds{0}, 0)).iteration_time;
  const Metrics figures = figures_of(fed(Seconds{0.01}, 0));
  EXPECT_NEAR((figures.iteration_time - step).value, 4 * 0.01, 1e-12);
  EXPECT_NEAR(figures.loading_time.value, 4 * 0.01, 1e-12);
}

TEST(Loading, IsTimeOfTheHost) {
  const Metrics always_there = figures_of(fed(Seconds{0}, 1));
  const Outcome late = evaluate(fed(Seconds{10}, 1));
  EXPECT_NEAR((late.metrics.host_time - always_there.host_time) / late.metrics.loading_time, 1,
              1e-9);
  EXPECT_EQ(late.bound, Bound::host);
  Seconds rows = late.metrics.bubble_time, waited;
  for (const KernelRow& row : late.kernels) {
    rows += row.work.exposed();
    if (row.op == OpName::data_loading) waited += row.work.exposed();
  }
  EXPECT_NEAR(rows / late.metrics.iteration_time, 1, 1e-9);
  EXPECT_EQ(waited, late.metrics.loading_time);
}

// Samples that the model makes itself are there when they are made.
TEST(Loading, IsNotOfSamples) {
  Scenario scenario = fed(Seconds{0}, 1);
  scenario.train.sequence = 2048;
  scenario.train.rollout = {.prompts = 16, .samples = 4, .lengths = {.prompt = 200, .output = 400}};
  const Metrics without = figures_of(scenario);
  scenario.train.loading.sequence_time = Seconds{10};
  const Metrics with = figures_of(scenario);
  EXPECT_EQ(with.iteration_time, without.iteration_time);
  EXPECT_FALSE(with.loading_time.value >= 0);
}

}  // namespace
}  // namespace engine
