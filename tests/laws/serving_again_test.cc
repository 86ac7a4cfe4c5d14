// Who makes way where prefixes are kept: it finds what nobody needed meanwhile, and reads the rest again.
#include <gtest/gtest.h>

#include "tests/support/serving_laboratory.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

Outcome run(const Scenario& scenario, const Resources& resources) {
  Outcome outcome = evaluate(scenario, resources);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

// In steps of 10 ms.
void expect_finish(const Outcome& outcome, std::int64_t number, double steps) {
  EXPECT_NEAR(toys::row_of(outcome, number).finish.value, steps * 10e-3, 1e-9) << number;
}

TEST(ServingAgain, WhatItGeneratedIsFoundAsItsPromptIs) {
  // Blocks of 4 tokens, 4 of them, and 8 tokens a step. As in VllmV1.TheNewestIsPreemptedAndReadAgain: at step 5 both requests have 8
  // tokens in 2 blocks each, and request 1 goes. Request 0 takes its second block, that of what it generated, and ends with step 8.
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.kv_blocks = 4;
  scenario.serving.max_num_batched_tokens = 8;
  const Resources two = toys::trace({{0, 4, 9}, {0, 4, 9}});
  const Outcome without = run(scenario, two);
  scenario.serving.prefix_caching = true;
  const Outcome with = run(scenario, two);
  for (const Outcome* outcome : {&without, &with}) {
    EXPECT_EQ(outcome->metrics.preemptions, 1);
    expect_finish(*outcome, 0, 9);
    EXPECT_EQ(outcome->metrics.prefix_hit_rate, 0);
  }
  // Its 9 tokens take two steps, and three more tokens as many; or 4 of them are there, and 5 take one.
  EXPECT_EQ(without.metrics.recomputed_tokens, 8);
  expect_finish(without, 1, 14);
  EXPECT_EQ(with.metrics.recomputed_tokens, 4);
  expect_finish(with, 1, 13);
  // With a block more and a prompt of 8, request 1 goes with 11 tokens. Request 0 takes the block that is not full: the others are there.
  scenario.serving.kv_blocks = 5;
  const Outcome more = run(scenario, toys::trace({{0, 4, 9}, {0, 8, 9}}));
  EXPECT_EQ(more.metrics.preemptions, 1);
  EXPECT_EQ(more.metrics.recomputed_tokens, 3);
}

TEST(ServingAgain, EnginesWithARadixTreeKeepWhatWasReadAsAPrompt) {
  // As in Sglang.WhoHasMadeLeastIsRetracted: request 1 is put back with KV of its prompt, 4 tokens or a block, and of 5 that it made.
  Scenario scenario = toys::served(policy_named("sglang"));
  scenario.serving.kv_blocks = 6;
  scenario.serving.new_token_ratio = 0;
  const Resources two = toys::trace({{0, 4, 16}, {0.035, 4, 12}});
  EXPECT_EQ(run(scenario, two).metrics.recomputed_tokens, 9);
  scenario.serving.prefix_caching = true;
  const Outcome kept = run(scenario, two);
  EXPECT_EQ(kept.metrics.preemptions, 1);
  EXPECT_EQ(kept.metrics.recomputed_tokens, 5);
}

Scenario overload(std::string_view policy) {
  Scenario scenario = toys::served_at(40);
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    if (kPolicies[i].name == policy) scenario.serving.policy = PolicyName(i);
  }
  scenario.load.requests = 400;
  scenario.load.lengths.prompt = 200;
  scenario.load.lengths.output = 120;
  scenario.load.lengths.distribution = LengthKind::uniform;
  scenario.load.lengths.prompt_cv = scenario.load.lengths.output_cv = 0.4;
  scenario.load.measure = MeasureKind::whole;
  scenario.serving.kv_blocks = 600;
  scenario.serving.max_num_batched_tokens = scenario.serving.chunk = 64;
  scenario.serving.new_token_ratio = 0;
  return scenario;
}

TEST(ServingAgain, AnOverloadReadsLess) {
  for (const std::string_view policy : {"vllm_v1", "vllm_v0", "sarathi", "sglang"}) {
    Scenario scenario = overload(policy);
    const Metrics without = evaluate(scenario).metrics;
    scenario.serving.prefix_caching = true;
    const Metrics with = evaluate(scenario).metrics;
    // After one retraction SGLang leaves more room.
    const double fewest = policy == "sglang" ? 0 : 20;
    EXPECT_GT(without.preemptions, fewest) << policy;
    EXPECT_GT(with.preemptions, fewest) << policy;
    EXPECT_GE(with.recomputed_tokens, 0) << policy;
    // Who is retracted by SGLang queues up behind all others: nothing of it is left.
    const double share = policy == "sglang" ? 1 : 0.9;
    EXPECT_LE(with.recomputed_tokens / with.preemptions,
              share * without.recomputed_tokens / without.preemptions)
        << policy;
    // Where prompts are read in pieces beside decodes, fewer tokens are fewer steps.
    if (policy == "vllm_v1") {
      EXPECT_LT(with.makespan, without.makespan);
    }
    // What a request has left itself is no hit of its prompt.
    EXPECT_EQ(with.prefix_hit_rate, 0) << policy;
  }
}

TEST(ServingAgain, WithoutPreemptionNothingChanges) {
  for (const std::string_view policy : {"vllm_v1", "vllm_v0", "sarathi", "sglang"}) {
    Scenario scenario = overload(policy);
    scenario.serving.kv_blocks = 10'000;
    const Metrics without = evaluate(scenario).metrics;
    scenario.serving.prefix_caching = true;
    const Metrics with = evaluate(scenario).metrics;
    EXPECT_EQ(with.preemptions, 0) << policy;
    EXPECT_EQ(with.makespan, without.makespan) << policy;
    EXPECT_EQ(with.ttft_p99, without.ttft_p99) << policy;
  }
}

// Of random loads, those in which requests make way: what they lost is never negative, and less than they had.
TEST(ServingAgain, NobodyFindsMoreThanItHad) {
  double had = 0, lost = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    toys::Laboratory lab(toys::random_case(number));
    lab.made.scenario.serving.prefix_caching = false;
    had += lab.run().lost_tokens;
    lab.made.scenario.serving.prefix_caching = true;
    const double now = lab.run().lost_tokens;
    EXPECT_GE(now, 0) << number;
    lost += now;
    for (const Replica& replica : lab.sim.replicas()) {
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << number;
    }
  }
  EXPECT_GT(had, 10'000);
  EXPECT_LT(lost, 0.8 * had);
}

}  // namespace
}  // namespace engine
