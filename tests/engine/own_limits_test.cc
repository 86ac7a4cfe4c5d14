// Engines that are told no limits set them by the device they find.
#include "engine/own_limits.h"

#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Device device_named(const char* name) { return toys::shipped("devices", name).device; }

// As EngineArgs.get_batch_defaults of vLLM has them for its server.
TEST(OwnLimits, OfVllmFollowFromTheDevice) {
  for (const char* large : {"h100-sxm", "h100-pcie", "h200-sxm", "b200-sxm", "h20", "mi300x",
                            "rtx-pro-6000", "gh200"}) {
    EXPECT_EQ(own_limits(device_named(large)).tokens, 8192) << large;
    EXPECT_EQ(own_limits(device_named(large)).sequences, 1024) << large;
  }
  for (const char* small : {"a100-80gb-sxm", "a100-80gb-pcie", "a100-40gb-sxm", "l4", "l40s", "a10",
                            "rtx-4090", "v100-sxm-32gb", "mi210"}) {
    EXPECT_EQ(own_limits(device_named(small)).tokens, 2048) << small;
    EXPECT_EQ(own_limits(device_named(small)).sequences, 256) << small;
  }
  // A sweep of the memory crosses the same line.
  Device device = device_named("h100-sxm");
  device.memory_capacity = Bytes{64e9};
  EXPECT_EQ(own_limits(device).tokens, 2048);
}

TEST(OwnLimits, CountWhereNothingIsStatedAndNowhereElse) {
  Scenario scenario = toys::shipped("serving", "vllm-v1");
  scenario.task = Task::serve;
  scenario.device = device_named("l40s");
  scenario.prefill.present = true;
  scenario.prefill.deployment = scenario;
  scenario.prefill.deployment.device = device_named("h200-sxm");
  std::optional<Scenario> filled;
  const Scenario& with = with_own_limits(scenario, filled);
  EXPECT_EQ(with.serving.max_num_seqs, 256);
  EXPECT_EQ(with.prefill.deployment.serving.max_num_seqs, 1024);
  EXPECT_EQ(with.prefill.deployment.serving.max_num_batched_tokens, 8192);
  scenario.serving.max_num_seqs = 77;
  EXPECT_EQ(with_own_limits(scenario, filled).serving.max_num_seqs, 77);
  EXPECT_EQ(with_own_limits(scenario, filled).serving.max_num_batched_tokens, 2048);
  // Where everything is stated nothing is copied.
  scenario = toys::shipped("serving", "sglang");
  scenario.task = Task::serve;
  EXPECT_EQ(&with_own_limits(scenario, filled), &scenario);
}

// Auto is what it stands for.
TEST(OwnLimits, AreAsGoodAsStated) {
  Scenario scenario = toys::shipped("serving", "vllm-v1");
  scenario.task = Task::serve;
  scenario.model = toys::shipped("models", "llama-3.1-8b").model;
  scenario.serving.kernels.clear();  // rooflines will do
  scenario.load.rate = RequestsPerSecond{4};
  scenario.load.requests = 200;
  for (const char* name : {"l40s", "h100-sxm", "a100-80gb-sxm"}) {
    scenario.device = device_named(name);
    const Outcome left = evaluate(scenario);
    ASSERT_EQ(left.status, Status::ok) << left.reason;
    const StepLimits limits = own_limits(scenario.device);
    EXPECT_EQ(left.metrics.token_limit, double(limits.tokens)) << name;
    EXPECT_EQ(left.metrics.sequence_limit, double(limits.sequences)) << name;
    Scenario stated = scenario;
    stated.serving.max_num_batched_tokens = limits.tokens;
    stated.serving.max_num_seqs = limits.sequences;
    const Outcome said = evaluate(stated);
    EXPECT_EQ(left.kernels, said.kernels) << name;
    EXPECT_EQ(left.metrics.kv_blocks, said.metrics.kv_blocks) << name;
  }
}

}  // namespace
}  // namespace engine
