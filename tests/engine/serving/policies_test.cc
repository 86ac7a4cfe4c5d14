// Timelines worked out by hand. Every step takes 10 ms, so times below are counts of steps.
#include <gtest/gtest.h>

#include "tests/support/serving_toys.h"
#include "tests/support/timelines.h"

namespace engine {
namespace {

using toys::expect_steps;
using toys::kStep;
using toys::run;

TEST(VllmV1, APromptIsOneStepAndEachFurtherTokenAnother) {
  const Outcome outcome = run(toys::served(policy_named("vllm_v1")), toys::trace({{0, 10, 5}}));
  expect_steps(outcome, 0, 0, 1, 5);
  EXPECT_EQ(outcome.metrics.steps, 5);
  EXPECT_NEAR(outcome.metrics.tpot.value, kStep, 1e-12);
}

TEST(VllmV1, WhoArrivesDuringAStepJoinsTheNext) {
  const Outcome outcome = run(toys::served(policy_named("vllm_v1")),
                              toys::trace({{0, 10, 5}, {0.015, 10, 2}, {0.020, 10, 1}}));
  expect_steps(outcome, 0, 0, 1, 5);
  expect_steps(outcome, 1, 2, 3, 4);
  expect_steps(outcome, 2, 2, 3, 3);  // at a boundary: in time for the step that starts there
}

TEST(VllmV1, ALongPromptIsReadInChunksBesideDecodes) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_batched_tokens = 8;
  // Request 1 has 20 tokens: 7 beside the decode of request 0, three times (7 + 7 + 6).
  const Outcome outcome = run(scenario, toys::trace({{0, 8, 9}, {0.005, 20, 3}}));
  expect_steps(outcome, 0, 0, 1, 9);
  expect_steps(outcome, 1, 1, 4, 6);
}

TEST(VllmV1, AChunkBoundaryAtTheEndOfThePromptCostsNoExtraStep) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_batched_tokens = 8;
  const Outcome outcome = run(scenario, toys::trace({{0, 16, 2}}));
  expect_steps(outcome, 0, 0, 2, 3);
}

// Sequences that come from elsewhere may be more than a step has tokens for, however often fewer of them decoded together.
TEST(VllmV1, WhoComesFromElsewhereBeyondTheTokensOfAStepTakesNoTurn) {
  const Resources resources = toys::trace({{0, 4, 30}, {0.1, 4, 30}, {0.2, 4, 30}});
  const auto served = [&resources](std::int64_t tokens, bool stepping) {
    Scenario scenario = toys::served(policy_named("vllm_v1"));
    scenario.prefill.present = true;
    fill_roles(scenario);
    scenario.serving.max_num_batched_tokens = tokens;
    scenario.serving.stepping = stepping;
    return run(scenario, resources);
  };
  const Outcome few = served(2, false), by_steps = served(2, true), enough = served(3, false);
  for (std::int64_t number = 0; number < 3; ++number) {
    EXPECT_NEAR(toys::row_of(few, number).finish.value, toys::row_of(by_steps, number).finish.value,
                1e-9);
  }
  // The third one waits until the first is done: some ten steps.
  EXPECT_GT(toys::row_of(few, 2).finish.value, toys::row_of(enough, 2).finish.value + 8 * kStep);
}

TEST(VllmV1, TheThresholdLeavesRoomForShortPrompts) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_batched_tokens = 16;
  scenario.serving.long_prefill_threshold = 8;
  const Outcome outcome = run(scenario, toys::trace({{0, 24, 1}, {0, 8, 1}}));
  expect_steps(outcome, 0, 0, 3, 3);
  expect_steps(outcome, 1, 0, 1, 1);
}

TEST(VllmV1, SeatsAreLimited) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_seqs = 1;
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 3}, {0, 4, 2}}));
  expect_steps(outcome, 0, 0, 1, 3);
  expect_steps(outcome, 1, 3, 4, 5);
}

TEST(VllmV1, TheNewestIsPreemptedAndReadAgain) {
  // Blocks of 4 tokens, 4 of them. Both prompts of 4 take one block in step 0; the first decodes need a
  // second one each (steps 1 to 4); at step 5, with 8 tokens each, both need a third and none is
  // free: request 1, the newest, goes, with 4 of its tokens decoded (5 made). Request 0 decodes on
  // through steps 5 to 8 with 3 blocks and ends at 9 with 9 tokens made.
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.kv_blocks = 4;
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 9}, {0, 4, 9}}));
  EXPECT_EQ(outcome.metrics.preemptions, 1);
  EXPECT_EQ(outcome.metrics.recomputed_tokens, 8);
  expect_steps(outcome, 0, 0, 1, 9);
  // Its 4 + 5 tokens need 3 blocks; one is free until step 9. Read again in step 9, which makes its
  // sixth token; three more steps make nine.
  expect_steps(outcome, 1, 0, 1, 13);
  EXPECT_EQ(toys::row_of(outcome, 1).preemptions, 1);
}

TEST(VllmV1, TheLastBlockIsEnough) {
  // 4 + 9 - 1 = 12 tokens are 3 blocks: exactly what there is.
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.kv_blocks = 3;
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 9}}));
  expect_steps(outcome, 0, 0, 1, 9);
  EXPECT_EQ(outcome.metrics.preemptions, 0);
  EXPECT_EQ(outcome.metrics.kv_peak, 1);
  // One token more could never fit: refused, not stuck.
  const Outcome refused = run(scenario, toys::trace({{0, 4, 10}, {0, 4, 2}}));
  EXPECT_EQ(refused.metrics.requests_refused, 1);
  expect_steps(refused, 1, 0, 1, 2);
}

TEST(VllmV1, APrefixInTheCacheIsNotReadAgain) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.prefix_caching = true;
  scenario.serving.max_num_batched_tokens = 8;
  auto recorded = std::make_shared<Trace>();
  recorded->arrival = {0, 0.1};
  recorded->prompt = {16, 18};
  recorded->output = {1, 1};
  recorded->block_tokens = 8;
  recorded->blocks = {11, 12, 11, 12, 13};
  recorded->first_block = {0, 2, 5};
  Resources resources;
  resources.traces["toy"] = recorded;
  const Outcome outcome = run(scenario, resources);
  expect_steps(outcome, 0, 0, 2, 2);     // 16 tokens, 8 a step
  expect_steps(outcome, 1, 10, 11, 11);  // 16 of 18 are there
  EXPECT_EQ(toys::row_of(outcome, 1).cached_tokens, 16);
  EXPECT_DOUBLE_EQ(outcome.metrics.prefix_hit_rate, 16.0 / 34);
}

TEST(VllmV1, AWholePromptInTheCacheStillReadsItsLastBlock) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.prefix_caching = true;
  auto recorded = std::make_shared<Trace>();
  recorded->arrival = {0, 0.1};
  recorded->prompt = {16, 16};
  recorded->output = {4, 4};
  recorded->block_tokens = 8;
  recorded->blocks = {11, 12, 11, 12};
  recorded->first_block = {0, 2, 4};
  Resources resources;
  resources.traces["toy"] = recorded;
  const Outcome outcome = run(scenario, resources);
  EXPECT_EQ(toys::row_of(outcome, 1).cached_tokens, 12);
  expect_steps(outcome, 1, 10, 11, 14);
}

// Blocks that only those share who make way come free with the last of them: the oldest goes on.
TEST(VllmV1, TheOldestMakesWayForNobody) {
  // Request 1 leaves its prompt of two blocks in the cache. Requests 2 and 3 find it in step 1 and need no block of their own; request 0
  // has read two of three pieces, of three blocks each. For the third one there are two blocks: it gets those that the others share.
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.prefix_caching = true;
  scenario.serving.max_num_batched_tokens = 24;
  scenario.serving.long_prefill_threshold = 12;
  scenario.serving.kv_blocks = 10;
  auto recorded = std::make_shared<Trace>();
  recorded->arrival = {0, 0, 0.005, 0.005};
  recorded->prompt = {36, 8, 8, 8};
  recorded->output = {2, 1, 2, 2};
  recorded->block_tokens = 4;
  recorded->blocks = {1, 2, 3, 4, 5, 6, 7, 8, 9, 21, 22, 21, 22, 21, 22};
  recorded->first_block = {0, 9, 11, 13, 15};
  Resources resources;
  resources.traces["toy"] = recorded;
  const Outcome outcome = run(scenario, resources);
  expect_steps(outcome, 0, 0, 3, 4);
  expect_steps(outcome, 2, 1, 2, 5);
  expect_steps(outcome, 3, 1, 2, 5);
  EXPECT_EQ(toys::row_of(outcome, 0).preemptions, 0);
  EXPECT_EQ(outcome.metrics.preemptions, 2);
}

TEST(VllmV0, PromptsStallDecodes) {
  // Request 1 arrives in step 1: step 2 reads its prompt and nothing else.
  const Outcome outcome =
      run(toys::served(policy_named("vllm_v0")), toys::trace({{0, 10, 4}, {0.015, 10, 2}}));
  expect_steps(outcome, 0, 0, 1, 5);
  expect_steps(outcome, 1, 2, 3, 4);
  // Gaps: request 0 has 1, 2 (over the prompt), 1 steps; request 1 has 1.
  EXPECT_NEAR(outcome.metrics.itl.value / kStep, 5.0 / 4, 1e-9);
}

TEST(VllmV0, WholePromptsShareTheBudget) {
  Scenario scenario = toys::served(policy_named("vllm_v0"));
  scenario.serving.max_num_batched_tokens = 20;
  const Outcome outcome = run(scenario, toys::trace({{0, 10, 1}, {0, 10, 1}, {0, 10, 1}}));
  expect_steps(outcome, 0, 0, 1, 1);
  expect_steps(outcome, 1, 0, 1, 1);
  expect_steps(outcome, 2, 1, 2, 2);
}

TEST(VllmV0, TheNewestIsPreempted) {
  Scenario scenario = toys::served(policy_named("vllm_v0"));
  scenario.serving.kv_blocks = 4;
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 9}, {0, 4, 9}}));
  EXPECT_EQ(outcome.metrics.preemptions, 1);
  expect_steps(outcome, 0, 0, 1, 9);
  expect_steps(outcome, 1, 0, 1, 13);
}

TEST(VllmV0, TheWatermarkHoldsTheQueueBack) {
  // 10 blocks, a fifth of them kept: request 1 needs 3 of 7 that are left when request 0 (3 blocks)
  // runs, leaving 4; request 2 would leave 1.
  Scenario scenario = toys::served(policy_named("vllm_v0"));
  scenario.serving.kv_blocks = 10;
  scenario.serving.watermark = 0.2;
  const Outcome outcome = run(scenario, toys::trace({{0, 12, 2}, {0.005, 12, 2}, {0.005, 12, 2}}));
  expect_steps(outcome, 0, 0, 1, 3);
  expect_steps(outcome, 1, 1, 2, 3);
  expect_steps(outcome, 2, 3, 4, 5);
}

TEST(Sarathi, DecodesComeFirstAndPromptsFillTheChunk) {
  Scenario scenario = toys::served(policy_named("sarathi"));
  scenario.serving.chunk = 8;
  // Step 1: one decode and 7 tokens of request 1; steps 2 and 3 likewise: 7 + 7 + 6.
  const Outcome outcome = run(scenario, toys::trace({{0, 8, 9}, {0.005, 20, 2}}));
  expect_steps(outcome, 0, 0, 1, 9);
  expect_steps(outcome, 1, 1, 4, 5);
}

TEST(Sarathi, PromptsBegunGoBeforeNewOnes) {
  Scenario scenario = toys::served(policy_named("sarathi"));
  scenario.serving.chunk = 8;
  // Step 0: 8 of request 0. Step 1: its other 4, and 4 of request 1. Step 2: one decode, 4 of
  // request 1 which are its last, 3 of request 2.
  const Outcome outcome = run(scenario, toys::trace({{0, 12, 2}, {0, 8, 1}, {0, 3, 1}}));
  expect_steps(outcome, 0, 0, 2, 3);
  expect_steps(outcome, 1, 1, 3, 3);
  expect_steps(outcome, 2, 2, 3, 3);
}

TEST(Sarathi, TheNewestIsPreempted) {
  Scenario scenario = toys::served(policy_named("sarathi"));
  scenario.serving.kv_blocks = 4;
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 9}, {0, 4, 9}}));
  EXPECT_EQ(outcome.metrics.preemptions, 1);
  expect_steps(outcome, 0, 0, 1, 9);
  expect_steps(outcome, 1, 0, 1, 13);
}

TEST(Orca, PromptsJoinDecodesAndLongestRoomIsSetAside) {
  Scenario scenario = toys::served(policy_named("orca"));
  scenario.model.max_context = 40;  // 10 blocks each
  scenario.serving.kv_blocks = 20;
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 4}, {0.005, 4, 2}, {0.005, 4, 1}}));
  expect_steps(outcome, 0, 0, 1, 4);
  expect_steps(outcome, 1, 1, 2, 3);
  expect_steps(outcome, 2, 3, 4, 4);  // room for two only
  // Each of the 4 decode steps held 40 tokens of room: request 0 with 5, 6, 7, request 1 with 5.
  EXPECT_NEAR(outcome.metrics.kv_waste, 1 - (5.0 + 6 + 7 + 5) / 160, 1e-12);
}

TEST(NoEvict, RoomForTheOutputIsSetAside) {
  Scenario scenario = toys::served(policy_named("no_evict"));
  scenario.serving.kv_blocks = 7;
  // 4 + 9 tokens are 4 blocks: two do not fit in 7.
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 9}, {0, 4, 9}}));
  EXPECT_EQ(outcome.metrics.preemptions, 0);
  expect_steps(outcome, 0, 0, 1, 9);
  expect_steps(outcome, 1, 9, 10, 18);
}

TEST(Static, ABatchRunsUntilItsLastMemberIsDone) {
  const Outcome outcome =
      run(toys::served(policy_named("static")), toys::trace({{0, 4, 2}, {0, 4, 5}, {0.005, 4, 1}}));
  expect_steps(outcome, 0, 0, 1, 2);
  expect_steps(outcome, 1, 0, 1, 5);
  expect_steps(outcome, 2, 5, 6, 6);
}

TEST(Static, PromptsOfABatchAreReadBeforeAnyDecodes) {
  Scenario scenario = toys::served(policy_named("static"));
  scenario.serving.max_num_batched_tokens = 8;
  const Outcome outcome = run(scenario, toys::trace({{0, 8, 2}, {0, 8, 2}}));
  expect_steps(outcome, 0, 0, 1, 3);
  expect_steps(outcome, 1, 0, 2, 3);
}

TEST(Ordering, UrgentRequestsOvertake) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_seqs = 1;
  scenario.serving.ordering = Ordering::priority;
  Resources resources = toys::trace({{0, 4, 3}, {0.005, 4, 1}, {0.006, 4, 1}});
  auto recorded = std::make_shared<Trace>(*resources.traces["toy"]);
  recorded->priority = {1, 1, 0};
  resources.traces["toy"] = recorded;
  const Outcome outcome = run(scenario, resources);
  expect_steps(outcome, 2, 3, 4, 4);
  expect_steps(outcome, 1, 4, 5, 5);
}

TEST(Ordering, TenantsTakeTurnsByTokens) {
  // Tenant 0 sends four at once; tenant 1 sends one a little later and waits for one answer, not four.
  // Prompts of 8 tokens, answers of 2: places 0, 8, 16 and 24 for tenant 0. Tenant 1 starts at the place
  // being served, 0, so it comes next. Its second request has place 8 + 2 (prompt and answer of the
  // first), so one more of tenant 0 goes before it.
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_seqs = 1;
  scenario.serving.ordering = Ordering::fair_share;
  Resources resources =
      toys::trace({{0, 8, 2}, {0, 8, 2}, {0, 8, 2}, {0, 8, 2}, {0.005, 8, 2}, {0.041, 8, 2}});
  auto recorded = std::make_shared<Trace>(*resources.traces["toy"]);
  recorded->tenant = {0, 0, 0, 0, 1, 1};
  resources.traces["toy"] = recorded;
  const Outcome outcome = run(scenario, resources);
  expect_steps(outcome, 0, 0, 1, 2);
  expect_steps(outcome, 4, 2, 3, 4);
  expect_steps(outcome, 1, 4, 5, 6);
  expect_steps(outcome, 5, 6, 7, 8);
  expect_steps(outcome, 2, 8, 9, 10);
  expect_steps(outcome, 3, 10, 11, 12);
}

TEST(Ordering, TheLeastSlackGoesFirst) {
  // Same arrival; the longer prompt needs more of the time before its limit.
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_seqs = 1;
  scenario.serving.ordering = Ordering::slo;
  scenario.slo.ttft.p99 = Seconds{1};
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 3}, {0.005, 4, 1}, {0.005, 400, 1}}));
  expect_steps(outcome, 2, 3, 4, 4);
  expect_steps(outcome, 1, 4, 5, 5);
}

}  // namespace
}  // namespace engine
