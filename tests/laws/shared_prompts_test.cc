// Prompts that several devices read together (parallel.cp), in a step and in the deployment that reads for another.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// Nothing takes time but arithmetic, of one large processor that no wave of tiles leaves partly idle.
Scenario prompts(std::int64_t cp, ContextExchange exchange) {
  Scenario scenario = toys::scenario();
  scenario.device.multiprocessors = scenario.device.rated_multiprocessors = 1;
  scenario.device.scale_up.bandwidth = BytesPerSecond{1e20};
  scenario.device.scale_up.latency = scenario.device.launch_latency = Seconds{0};
  scenario.device.memory_bandwidth = BytesPerSecond{1e20};
  scenario.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 65536};
  scenario.parallel.cp = cp;
  scenario.serving.context = exchange;
  return scenario;
}

Metrics figures_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

constexpr ContextExchange kExchanges[] = {ContextExchange::ring, ContextExchange::all_gather,
                                          ContextExchange::all_to_all};

TEST(SharedPrompts, DivideTimeAndCacheOverAFreeNetwork) {
  const Metrics alone = figures_of(prompts(1, ContextExchange::ring));
  for (const ContextExchange exchange : kExchanges) {
    for (const std::int64_t cp : {2, 4, 8}) {
      const Metrics shared = figures_of(prompts(cp, exchange));
      EXPECT_NEAR(alone.attention_time / shared.attention_time, double(cp), 1e-3 * double(cp));
      EXPECT_NEAR(alone.step_time / shared.step_time, double(cp), 0.03 * double(cp));
      EXPECT_NEAR(alone.kv_per_token / shared.kv_per_token, double(cp), 1e-9);
      EXPECT_EQ(shared.devices, double(cp));
      EXPECT_NEAR(shared.model_flops_utilization / alone.model_flops_utilization, 1, 0.03);
    }
  }
}

// A prompt of which a part was cached is exchanged with it: no exchange gets cheaper by that.
TEST(SharedPrompts, CachedKeysTravelToo) {
  for (const ContextExchange exchange : {ContextExchange::ring, ContextExchange::all_gather}) {
    Scenario scenario = toys::scenario();
    scenario.step = {.phase = StepPhase::prefill, .batch = 1, .prompt = 1024};
    scenario.parallel.cp = 4;
    scenario.serving.context = exchange;
    const Metrics fresh = figures_of(scenario);
    scenario.step.cached = 30000;
    EXPECT_GT(figures_of(scenario).communication_time, fresh.communication_time);
  }
}

TEST(SharedPrompts, ArithmeticIsNotLost) {
  const auto flops = [](const Outcome& outcome) {
    double sum = 0;
    for (const KernelRow& row : outcome.kernels) sum += row.work.flops.value;
    return sum;
  };
  const double alone = flops(evaluate(prompts(1, ContextExchange::ring)));
  for (const ContextExchange exchange : kExchanges) {
    EXPECT_NEAR(4 * flops(evaluate(prompts(4, exchange))) / alone, 1, 0.01);
  }
}

// Requests whose prompts are read elsewhere, by one device or by four.
Scenario handed_over(std::int64_t cp) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::request;
  scenario.request = {.batch = 1, .prompt = 32768, .output = 4};
  scenario.prefill.present = true;
  fill_roles(scenario);
  scenario.prefill.deployment.parallel.cp = cp;
  return scenario;
}

TEST(SharedPrompts, ReadFasterForAnotherDeployment) {
  const Metrics one = figures_of(handed_over(1)), four = figures_of(handed_over(4));
  EXPECT_LT(four.ttft, one.ttft * 0.5);
  EXPECT_EQ(four.tpot, one.tpot);
  EXPECT_EQ(four.devices, one.devices + 3);
}

TEST(SharedPrompts, CarryMoreLoad) {
  const auto ttft = [](std::int64_t cp, ContextExchange exchange) {
    Scenario scenario = handed_over(cp);
    scenario.task = Task::serve;
    scenario.load.lengths = {.prompt = 16384, .output = 8};
    scenario.load.rate = RequestsPerSecond{1};
    scenario.load.requests = 50;
    scenario.prefill.deployment.serving.context = exchange;
    return figures_of(scenario).ttft;
  };
  const Seconds one = ttft(1, ContextExchange::ring);
  for (const ContextExchange exchange : kExchanges) {
    EXPECT_LT(ttft(4, exchange), one * 0.6);
  }
}

TEST(SharedPrompts, WhatCannotBeIsARowWithAReason) {
  const auto reason = [](Scenario scenario, auto change) {
    change(scenario);
    return evaluate(scenario).reason;
  };
  const Scenario step = prompts(2, ContextExchange::ring);
  EXPECT_EQ(reason(step, [](Scenario& s) { s.step.phase = StepPhase::decode; }),
            "parallel.cp > 1: a decode step has one token a sequence, which devices cannot share; "
            "step.phase: prefill works");
  EXPECT_EQ(reason(step, [](Scenario& s) { s.task = Task::serve; }),
            "parallel.cp > 1: devices read prompts together, and do not generate together; state "
            "prefill.parallel.cp, a deployment that reads prompts and hands its KV cache over");
  EXPECT_EQ(reason(step, [](Scenario& s) { s.model.window = 1024; }),
            "a ring passes on all keys, of which model.window leaves few; serving.context: "
            "all_gather or all_to_all works with windows");
  EXPECT_EQ(reason(handed_over(64),
                   [](Scenario& s) {
                     s.prefill.deployment.serving.context = ContextExchange::all_to_all;
                   }),
            "prefill: model.heads 32 cannot be split 64 ways (parallel.tp x parallel.cp, which "
            "serving.context: all_to_all splits heads over)");
  EXPECT_EQ(reason(step,
                   [](Scenario& s) {
                     s.model = toys::mixture();
                     s.parallel = {.dp = 4, .ep = 4, .cp = 2};
                   }),
            "devices that read a prompt together (parallel.cp > 1) and exchange tokens with other "
            "replicas' experts (parallel.ep > parallel.tp) are modelled for task train only");
}

}  // namespace
}  // namespace engine
