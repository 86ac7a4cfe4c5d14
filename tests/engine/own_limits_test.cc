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
  std::unique_ptr<Scenario> filled;
  const Scenario& with = with_own_limits(scenario, filled);
  EXPECT_EQ(with.serving.max_num_seqs, 256);
  EXPECT_EQ(with.prefill.deployment.serving.max_num_seqs, 1024);
  EXPECT_EQ(with.prefill.deployment.serving.max_num_batched_tokens, 8192);
  scenario.serving.max_num_seqs = 77;
  EXPECT_EQ(with_own_limits(scenario, filled).serving.max_num_seqs, 77);
  EXPECT_EQ(with_own_limits(scenario, filled).serving.max_num_batched_tokens, 2048);
  // Where everything is stated nothing is copied.
  scenario = toys::shipped("serving", "tensorrt-llm");
  scenario.task = Task::serve;
  EXPECT_EQ(&with_own_limits(scenario, filled), &scenario);
}

Device device_of(double mib) {
  Device device;
  device.memory_capacity = Bytes{mib * 0x1p20};
  return device;
}

// 512 MB, 1.5 MB for each token of a chunk, 2 MB for each sequence of the largest graph, and 1 GB for eight devices; 10 GB at least of large
// memories. What is left is a share in thousandths.
TEST(OwnLimits, OfSglangFollowFromTheMemoryAndTheLayout) {
  const auto share = [](double mib, std::int64_t tp, std::int64_t pp = 1) {
    return sglang_limits(device_of(mib), {.tp = tp, .pp = pp}).memory;
  };
  EXPECT_EQ(share(24564, 1), 0.847);  // 512 + 3072 + 48 + 128
  EXPECT_EQ(share(49152, 1), 0.861);  // 512 + 6144 + 64 + 128
  EXPECT_EQ(share(81920, 1), 0.836);  // 512 + 12288 + 512 + 128
  EXPECT_EQ(share(81920, 8), 0.819);  // 512 + 12288 + 1024 + 1024
  EXPECT_EQ(share(81920, 4, 2), 0.819);
  EXPECT_EQ(share(143771, 8), 0.897);  // the same
  EXPECT_EQ(share(183359, 8), 0.852);  // 512 + 24576 + 1024 + 1024
  EXPECT_EQ(share(2048, 1), 0.01);     // buffers alone do not fit
  const auto chunk = [](const char* device, const Parallelism& parallel) {
    return sglang_limits(device_named(device), parallel).chunk;
  };
  EXPECT_EQ(chunk("rtx-4090", {}), 2048);
  EXPECT_EQ(chunk("l40s", {}), 4096);
  EXPECT_EQ(chunk("a100-80gb-sxm", {}), 8192);
  EXPECT_EQ(chunk("h200-sxm", {.tp = 8}), 8192);
  EXPECT_EQ(chunk("b200-sxm", {.tp = 8}), 16384);
  EXPECT_EQ(chunk("mi300x", {}), 16384);
  // Replicas apart have a chunk each; those that share experts divide one.
  EXPECT_EQ(chunk("h200-sxm", {.dp = 8}), 8192);
  EXPECT_EQ(chunk("h200-sxm", {.dp = 8, .ep = 8}), 1024);
  EXPECT_EQ(chunk("h200-sxm", {.tp = 2, .dp = 4, .ep = 8}), 2048);
  EXPECT_EQ(chunk("h200-sxm", {.dp = 16, .ep = 8}), 1024);  // two groups of eight
}

// Each deployment by its own device and layout, and whatever the task is where a share of the memory is left to it.
TEST(OwnLimits, OfSglangCountWhereNothingIsStated) {
  Scenario scenario = toys::shipped("serving", "sglang");
  scenario.task = Task::serve;
  scenario.device = device_named("h200-sxm");
  scenario.parallel = {.dp = 8, .ep = 8};
  scenario.prefill.present = true;
  scenario.prefill.deployment = scenario;
  scenario.prefill.deployment.device = device_named("b200-sxm");
  scenario.prefill.deployment.parallel = {.tp = 8};
  std::unique_ptr<Scenario> filled;
  const Scenario& with = with_own_limits(scenario, filled);
  EXPECT_EQ(with.serving.chunk, 1024);
  EXPECT_EQ(with.serving.max_num_batched_tokens, 1024);
  EXPECT_EQ(with.prefill.deployment.serving.chunk, 16384);
  EXPECT_EQ(with.prefill.deployment.serving.memory_utilization,
            sglang_limits(device_named("b200-sxm"), {.tp = 8}).memory);
  scenario.serving.chunk = 500;
  EXPECT_EQ(with_own_limits(scenario, filled).serving.chunk, 500);
  scenario.task = Task::step;
  EXPECT_GT(with_own_limits(scenario, filled).serving.memory_utilization, 0.8);
  // Shares of other kinds are what vLLM and TensorRT-LLM take.
  scenario.serving.memory_share = MemoryShare::rest;
  EXPECT_EQ(with_own_limits(scenario, filled).serving.memory_utilization, 0.9);
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
