// SGLang's scheduler: timelines worked out by hand. Every step takes 10 ms, so times below are counts of steps.
#include <gtest/gtest.h>

#include "tests/support/serving_toys.h"
#include "tests/support/timelines.h"

namespace engine {
namespace {

using toys::expect_steps;
using toys::kStep;
using toys::run;

TEST(Sglang, PromptsGoFirstInChunks) {
  Scenario scenario = toys::served(policy_named("sglang"));
  scenario.serving.chunk = 8;
  // Steps 1 and 2 read the 16 tokens of request 1; request 0 waits for them.
  const Outcome outcome = run(scenario, toys::trace({{0, 8, 3}, {0.005, 16, 2}}));
  expect_steps(outcome, 0, 0, 1, 5);
  expect_steps(outcome, 1, 1, 3, 4);
}

TEST(Sglang, RoomIsKeptForOutputsToCome) {
  // 10 blocks of 4. Request 0 holds 8 tokens and will make 16; half of the rest is kept. Request 1
  // would bring 24 more: 8 + 8 + 24 + 8 > 40, so it waits until request 0 is done.
  Scenario scenario = toys::served(policy_named("sglang"));
  scenario.serving.kv_blocks = 10;
  scenario.serving.new_token_ratio = 0.5;
  const Outcome outcome = run(scenario, toys::trace({{0, 8, 17}, {0.005, 24, 16}}));
  expect_steps(outcome, 0, 0, 1, 17);
  expect_steps(outcome, 1, 17, 18, 33);
}

TEST(Sglang, NewcomersCountWhole) {
  // 10 blocks of 4. Request 0 holds 8 tokens, and half of the 16 that it will make are kept. Request 1 brings a prompt of 8 and all that
  // it will make: 8 + 8 + 8 + 16 = 40 fit, and one more does not, though half of them would.
  Scenario scenario = toys::served(policy_named("sglang"));
  scenario.serving.kv_blocks = 10;
  scenario.serving.new_token_ratio = 0.5;
  const auto let_in_after = [&](std::int32_t output) {
    const Outcome outcome = run(scenario, toys::trace({{0, 8, 17}, {0.005, 8, output}}));
    return toys::row_of(outcome, 1).scheduled.value / kStep;
  };
  EXPECT_NEAR(let_in_after(16), 1, 1e-6);
  EXPECT_NEAR(let_in_after(17), 17, 1e-6);
}

// Request 0 has decoded 300 steps when request 1 comes: it holds 8 + 300 tokens and is to make 100 more. The share of these that is kept has
// fallen from 0.7 by half of its way to 0.098.
TEST(Sglang, TheShareOfOutputsToComeFallsWithEveryStep) {
  Scenario scenario = toys::served(policy_named("sglang"));
  scenario.serving.kv_blocks = 110;
  scenario.serving.new_token_ratio = 0.7;
  const double kept = (0.7 - (0.7 - 0.098) * 300 / 600) * 100;
  const auto most = std::int32_t(440 - 308 - kept - 8);
  const auto let_in_after = [&](std::int32_t output) {
    const Outcome outcome = run(scenario, toys::trace({{0, 8, 401}, {300.5 * kStep, 8, output}}));
    return toys::row_of(outcome, 1).scheduled.value / kStep;
  };
  EXPECT_NEAR(let_in_after(most), 301, 1e-6);
  EXPECT_NEAR(let_in_after(most + 1), 401, 1e-6);
}

// 20 blocks of 4. Beside 44 tokens of the two before it request 2 with its 37 does not fit. Request 0 is gone after 5 steps, and then it
// would: the scheduler notices that with the next decode, and reads it after that.
TEST(Sglang, WhoDidNotFitIsTriedAStepAfterSomebodyLeft) {
  Scenario scenario = toys::served(policy_named("sglang"));
  scenario.serving.kv_blocks = 20;
  scenario.serving.new_token_ratio = 0;
  const Outcome outcome = run(scenario, toys::trace({{0, 40, 5}, {0, 4, 12}, {0.005, 28, 9}}));
  expect_steps(outcome, 0, 0, 1, 5);
  expect_steps(outcome, 1, 0, 1, 13);
  expect_steps(outcome, 2, 6, 7, 15);
}

// 12 blocks of 4, of which nothing is kept for outputs to come. After 14 steps either of the three that decode has four, and the newest is
// put back. A step later request 1 is done, and the 24 tokens of request 2 would fit beside the 17 of request 0. But what was made, with 20
// more tokens each, is more than all that those that stayed were to make: so all of it is kept, until request 0 is done.
TEST(Sglang, AfterARetractionTheShareFollowsWhatWasMade) {
  Scenario scenario = toys::served(policy_named("sglang"));
  scenario.serving.kv_blocks = 12;
  scenario.serving.new_token_ratio = 0;
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 40}, {0.005, 4, 14}, {0.005, 4, 20}}));
  EXPECT_EQ(toys::row_of(outcome, 2).preemptions, 1);
  expect_steps(outcome, 0, 0, 1, 41);
  expect_steps(outcome, 1, 1, 2, 15);
  expect_steps(outcome, 2, 1, 2, 48);
}

TEST(Sglang, WhoHasMadeLeastIsRetracted) {
  // 6 blocks. Request 1 is read in step 5, when request 0 has made 4 tokens and holds 7: with 4 and all 12 of its own that is 23 of 24.
  // In step 11 request 0 needs its fourth block, and either has three. Request 1 has made 6 tokens, request 0 has made 9. Its 10 tokens
  // and 6 more fit when request 0 is done.
  Scenario scenario = toys::served(policy_named("sglang"));
  scenario.serving.kv_blocks = 6;
  scenario.serving.new_token_ratio = 0;
  const Outcome outcome = run(scenario, toys::trace({{0, 4, 16}, {0.035, 4, 12}}));
  EXPECT_EQ(outcome.metrics.preemptions, 1);
  EXPECT_EQ(toys::row_of(outcome, 0).preemptions, 0);
  EXPECT_EQ(toys::row_of(outcome, 1).preemptions, 1);
  expect_steps(outcome, 0, 0, 1, 17);  // one step waited for request 1's prompt
  expect_steps(outcome, 1, 4, 5, 23);
}

}  // namespace
}  // namespace engine
