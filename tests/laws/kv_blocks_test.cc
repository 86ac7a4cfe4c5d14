// The KV blocks of a served replica lie in its devices' memory.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "tests/support/hybrid_toy.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

Scenario served_model(const ModelSpec& model) {
  Scenario scenario = toys::served_at(20);
  scenario.model = model;
  scenario.device.memory_capacity = Bytes{100e9};
  scenario.serving.block_size = 16;
  scenario.serving.kv_blocks = 0;
  scenario.serving.prefix_caching = false;
  scenario.load.requests = 50;
  scenario.load.lengths.prompt = 300;
  return scenario;
}

// Models whose sequences keep keys of every token in every layer, a latent, the last tokens only, a state besides.
std::vector<Scenario> models() {
  ModelSpec window = toys::model();
  window.window = 64;
  window.full_attention_every = 2;
  std::vector<Scenario> all;
  for (const ModelSpec& model : {toys::model(), toys::latent(), window, toys::hybrid().model}) {
    all.push_back(served_model(model));
  }
  return all;
}

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

TEST(KvBlocks, FillTheShareOfTheMemoryThatTheModelLeaves) {
  for (Scenario& scenario : models()) {
    for (const double share : {0.5, 0.9}) {
      scenario.serving.memory_utilization = share;
      const Metrics got = figures(scenario);
      const double budget = share * 100e9;
      const double model = (got.weights + got.activations + got.reserved).value;
      EXPECT_NEAR((got.memory_used + got.memory_free).value, budget, 1) << share;
      EXPECT_NEAR(got.memory_used.value, model + got.kv_cache.value, 1) << share;
      const double block = got.kv_cache.value / got.kv_blocks;
      EXPECT_GE(got.memory_free.value, -1) << share;
      EXPECT_LE(got.memory_free.value, 2 * block + 1e-6 * budget) << share;
    }
  }
}

TEST(KvBlocks, ThatAreStatedTakeTheirMemory) {
  for (Scenario& scenario : models()) {
    const Metrics all = figures(scenario);
    scenario.serving.kv_blocks = std::int64_t(all.kv_blocks) / 2;
    const Metrics half = figures(scenario);
    const double share = half.kv_blocks / all.kv_blocks;
    EXPECT_NEAR(half.kv_cache / all.kv_cache, share, 1e-9);
    EXPECT_NEAR((half.memory_used + half.memory_free).value, 0.9 * 100e9, 1);
  }
}

// Sequences that they hold follow from the blocks alone: as many as there are by themselves say the same when they are stated. Whole
// blocks of a state take a little more than its bytes.
TEST(KvBlocks, ThatAreStatedHoldWhatAsManyOthersDo) {
  for (Scenario& scenario : models()) {
    for (const double gigabytes : {30.3, 47.7, 100.0}) {
      scenario.device.memory_capacity = Bytes{gigabytes * 1e9};
      scenario.serving.kv_blocks = 0;
      const Metrics found = figures(scenario);
      scenario.serving.kv_blocks = std::int64_t(found.kv_blocks);
      const Metrics stated = figures(scenario);
      EXPECT_NEAR(stated.max_batch, found.max_batch, 1 + 2e-3 * found.max_batch) << gigabytes;
      EXPECT_NEAR(stated.kv_capacity_tokens, found.kv_capacity_tokens,
                  2e-3 * found.kv_capacity_tokens);
    }
  }
  Scenario scenario = served_model(toys::model());  // requests of 320 tokens are 20 blocks each
  for (const std::int64_t sequences : {1, 7, 50}) {
    scenario.serving.kv_blocks = 20 * sequences;
    EXPECT_EQ(figures(scenario).max_batch, sequences);
    EXPECT_EQ(figures(scenario).kv_capacity_tokens, 320 * sequences);
  }
}

// An engine takes as many as it is told to, beyond its share of the memory, too; but there is no more than the memory.
TEST(KvBlocks, BeyondTheMemoryAreRefused) {
  for (Scenario& scenario : models()) {
    scenario.serving.memory_utilization = 1;
    const double most = figures(scenario).kv_blocks;
    scenario.serving.memory_utilization = 0.6;
    scenario.serving.kv_blocks = std::int64_t(most);
    const Metrics got = figures(scenario);
    EXPECT_EQ(got.memory_free.value, 0);
    EXPECT_NEAR(got.memory_used.value, 100e9, 1e-3 * 100e9);
    scenario.serving.kv_blocks = std::int64_t(std::ceil(most * 1.001)) + 1;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::infeasible);
    EXPECT_EQ(outcome.reason_class, ReasonClass::memory);
    EXPECT_TRUE(outcome.reason.starts_with("serving.kv_blocks")) << outcome.reason;
  }
}

TEST(KvBlocks, OfThoseThatReadPromptsLieInTheirMemory) {
  Scenario scenario = served_model(toys::model());
  const double most = figures(scenario).kv_blocks;
  scenario.prefill.present = true;
  fill_roles(scenario);
  figures(scenario);
  scenario.prefill.deployment.serving.kv_blocks = std::int64_t(2 * most);
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_TRUE(outcome.reason.starts_with("prefill: serving.kv_blocks")) << outcome.reason;
}

// One request in hundreds is short enough, and comes before anything is measured or after: no figure would be of anybody.
TEST(KvBlocks, ThatHoldHardlyAnybodyLeaveNoFigures) {
  Scenario scenario = served_model(toys::model());
  scenario.load.requests = 300;
  scenario.load.lengths.distribution = LengthKind::lognormal;
  for (std::int64_t blocks = 2; blocks < 40; ++blocks) {
    scenario.serving.kv_blocks = blocks;
    const Outcome outcome = evaluate(scenario);
    if (outcome.status == Status::ok) {
      EXPECT_GT(outcome.metrics.requests_measured, 0) << blocks;
      EXPECT_TRUE(std::isfinite(outcome.metrics.ttft.value)) << blocks;
    } else {
      EXPECT_TRUE(std::isnan(outcome.metrics.ttft.value)) << blocks;
    }
  }
}

}  // namespace
}  // namespace engine
