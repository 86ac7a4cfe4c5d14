// How much of its peak a memory moves: what a cache serves is none of it, and no memory moves more than its peak.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "engine/evaluate.h"
#include "tests/sweep/sweep_fixture.h"

namespace engine {
namespace {

sweep::SweepSpec spec_of(const std::string& text) {
  auto spec = sweep::read_sweep_text(text, "memory.yaml", sweep::Library({paths::specs()}),
                                     sweep::InertAxes::allowed);
  EXPECT_TRUE(spec) << to_text(spec.mistakes());
  return std::move(spec).value();
}

// Hands every point that works, and what came of it, to `take`.
template <class Take>
void each_outcome(const std::string& text, Take&& take) {
  const sweep::SweepSpec spec = spec_of(text);
  for (const Scenario& scenario : sweep::admitted(spec)) {
    const Outcome outcome = evaluate(scenario, *spec.resources);
    if (outcome.status == Status::ok) take(scenario, outcome);
  }
}

constexpr const char* kDevices =
    "  - device: [tpu-v4, tpu-v5e, tpu-v6e, gaudi-3, trainium-2, l4, l40s, rtx-4090, "
    "a100-80gb-sxm, "
    "h100-sxm, h200-sxm, b200-sxm, mi300x]\n";

TEST(MemoryUse, IsNeverAboveOne) {
  int points = 0;
  const auto within = [&points](const Scenario& scenario, const Outcome& outcome) {
    ++points;
    EXPECT_GT(outcome.metrics.memory_bandwidth_utilization, 0) << scenario.device.name;
    EXPECT_LE(outcome.metrics.memory_bandwidth_utilization, 1)
        << scenario.device.name << " " << scenario.model.name << " " << scenario.step.batch << " "
        << scenario.step.prompt;
  };
  const std::string models = "  - model: [qwen3-0.6b, llama-3.1-8b, gpt-oss-20b]\n";
  each_outcome(std::string("base: {task: step, step: {phase: prefill}}\naxes:\n") + kDevices +
                   models + "  - step.batch: [1, 8, 256]\n  - step.prompt: [16, 256, 1024]\n",
               within);
  each_outcome(std::string("base: {task: step, step: {phase: decode, context: 300}}\naxes:\n") +
                   kDevices + models + "  - step.batch: [1, 64, 1024]\n",
               within);
  each_outcome(
      std::string("base: {task: serve, model: qwen3-0.6b, load: {rate: 20 req/s, requests: "
                  "100, lengths: {prompt: 256, output: 20}}}\naxes:\n") +
          kDevices,
      within);
  EXPECT_GT(points, 200);
}

// A step that waits for memory alone, with and without a cache that holds what goes from kernel to kernel.
TEST(MemoryUse, LeavesOutWhatACacheServes) {
  const auto used = [](const char* cache) {
    double utilization = NAN;
    each_outcome(std::string("base: {task: step, device: {from: h100-sxm, l2_capacity: ") + cache +
                     "}, model: llama-3.2-1b, host: none, calibration: {tier: roofline}, step: "
                     "{phase: decode, batch: 64, context: 100}}\n",
                 [&](const Scenario& scenario, const Outcome& outcome) {
                   const Bytes moved = scenario.device.memory_bandwidth *
                                       outcome.metrics.step_time *
                                       outcome.metrics.memory_bandwidth_utilization;
                   Bytes all, from_memory;
                   for (const KernelRow& row : outcome.kernels) {
                     all += row.work.bytes;
                     from_memory += row.work.from_memory;
                     EXPECT_LE(row.work.from_memory, row.work.bytes);
                   }
                   EXPECT_NEAR(moved / from_memory, 1, 1e-9);
                   utilization = moved / all;
                 });
    return utilization;
  };
  EXPECT_NEAR(used("1 B"), 1, 1e-6);  // no cache: all of it
  EXPECT_LT(used("50 MB"), 0.99);     // weights and KV, but not what kernels hand over
  EXPECT_GT(used("50 MB"), 0.9);
}

}  // namespace
}  // namespace engine
