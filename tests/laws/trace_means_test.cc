// What is estimated from a trace follows from the requests that are replayed, all of them.
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

// Short and long prompts in turns, so many of them.
Resources in_turns(int rows, std::int32_t even, std::int32_t odd) {
  std::vector<toys::TraceRow> all;
  for (int i = 0; i < rows; ++i) all.push_back({double(i), i % 2 == 0 ? even : odd, 4});
  return toys::trace(all);
}

Metrics figures(const Scenario& scenario, const Resources& resources) {
  const Outcome outcome = evaluate(scenario, resources);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

// Requests of 4 tokens after prompts of 20 or 100 tokens: of 64 on average.
TEST(TraceMeans, DoNotHangOnTheNumberOfRows) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.output.requests = false;
  for (const int rows : {2, 500, 1100, 2600, 6000}) {
    EXPECT_EQ(figures(scenario, in_turns(rows, 20, 100)).max_batch, 4000 / 64) << rows;
    EXPECT_EQ(figures(scenario, in_turns(rows, 100, 20)).max_batch, 4000 / 64) << rows;
  }
}

TEST(TraceMeans, LeaveOutWhatIsNotReplayed) {
  std::vector<toys::TraceRow> rows;
  for (int i = 0; i < 100; ++i) rows.push_back({double(i), i < 10 ? 36 : 796, 4});
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.load.requests = 10;
  EXPECT_EQ(figures(scenario, toys::trace(rows)).max_batch, 4000 / 40);
  scenario.load.requests = 0;
  EXPECT_EQ(figures(scenario, toys::trace(rows)).max_batch, 4000 / ((10 * 40 + 90 * 800) / 100));
}

}  // namespace
}  // namespace engine
