// What clients measure between two chunks of an answer: the time between two steps that make tokens of it. With speculation a
// chunk carries several tokens, so that it is longer than the time per token.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

// Answers of a first token and 12 more. Proposals of `tokens` that always hold make one more at a time.
TEST(ClientGaps, AreTheTimePerTokenTimesTheTokensOfAChunk) {
  for (const std::int64_t requests : {0, 300}) {
    for (const std::int64_t tokens : {0, 1, 2, 3, 5}) {
      Scenario scenario = toys::served_at(5);
      scenario.load.requests = requests;
      scenario.load.lengths.output = 13;
      if (tokens > 0) {
        scenario.speculation = {
            .method = SpeculationMethod::ngram, .tokens = tokens, .acceptance = "1"};
      }
      const Metrics metrics = figures(scenario);
      const double chunk = double(tokens + 1);
      // A part of a run begins and ends in the midst of answers.
      EXPECT_NEAR(metrics.itl / metrics.tpot / chunk, 1, 0.02) << tokens;
      // Steps take 10 ms, whatever is in them; some begin with a prompt between.
      EXPECT_GE(metrics.itl_p50.value, 0.00995) << tokens;
      EXPECT_LE(metrics.itl_p50.value, 0.0101) << tokens;
    }
  }
}

}  // namespace
}  // namespace engine
