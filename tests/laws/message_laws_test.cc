// When an engine takes requests in, and when clients hear of their answers: intervals that engines count in steps and in tokens. Steps of
// the toy take 10 ms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/evaluate.h"
#include "tests/support/serving_toys.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr double kStep = 10e-3;

Outcome evaluated(const Scenario& scenario, const Resources& resources = {}) {
  Outcome outcome = evaluate(scenario, resources);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

// Sixteen clients and answers of 20 tokens: 1,600 tokens a second.
Scenario sixteen_clients() {
  Scenario scenario = toys::served_at(1);
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 16;
  return scenario;
}

// A server sends less often and never falls behind: a message carries what came meanwhile, so rates are those of the engine, and nobody
// waits longer than for a message to everybody.
TEST(MessageLaws, AFrontEndThatMergesDelaysAndDoesNotLimit) {
  const Metrics engine = evaluated(sixteen_clients()).metrics;
  for (const double message : {1e-5, 1e-4, 1e-3, 3e-3}) {
    Scenario scenario = sixteen_clients();
    scenario.host.front_end_per_message = Seconds{message};
    const Metrics metrics = evaluated(scenario).metrics;
    const double all = 16 * message;
    EXPECT_LE(metrics.ttft.value, engine.ttft.value + 2 * all + kStep) << message;
    EXPECT_GE(metrics.ttft.value, engine.ttft.value) << message;
    // A client asks again once it has its answer.
    EXPECT_GE(metrics.output.value, engine.output.value / (1 + (all + kStep) / (20 * kStep)))
        << message;
    scenario.host.front_end_merges = false;
    EXPECT_LE(evaluated(scenario).metrics.output.value, 1.02 / message) << message;
  }
}

// The column says how near the limit is, whatever happens to messages beyond it.
TEST(MessageLaws, HowBusyTheFrontEndIsStandsInTheRow) {
  Scenario scenario = sixteen_clients();
  scenario.host.front_end_per_message = Seconds{2e-3};
  const Metrics metrics = evaluated(scenario).metrics;
  EXPECT_NEAR(metrics.front_end_use, metrics.output.value * 2e-3, 1e-9);
  EXPECT_GT(metrics.front_end_use, 2);
  scenario.host.front_end_merges = false;
  EXPECT_NEAR(evaluated(scenario).metrics.front_end_use, 1, 0.02);
  scenario.host.front_end_merges = true;
  scenario.serving.stream_interval = 10;
  EXPECT_LT(evaluated(scenario).metrics.front_end_use, 0.4);
  scenario.host.front_end_per_message = Seconds{0};
  EXPECT_EQ(evaluated(scenario).metrics.front_end_use, 0);
}

TEST(MessageLaws, SoManyProcessesSendSoManyTimesAsMuch) {
  Scenario four = sixteen_clients();
  four.host.front_end_merges = false;
  Scenario faster = four;
  four.host.front_end_per_message = Seconds{8e-3};
  four.host.front_end_processes = 4;
  faster.host.front_end_per_message = Seconds{2e-3};
  const Metrics side_by_side = evaluated(four).metrics;
  EXPECT_EQ(side_by_side.output, evaluated(faster).metrics.output);
  EXPECT_NEAR(side_by_side.output.value, 500, 10);
  // Messages of ten tokens, but for the first of each answer.
  four.serving.stream_interval = 10;
  EXPECT_GT(evaluated(four).metrics.output.value, 3 * side_by_side.output.value);
}

// One request of 65 tokens: the first leaves after one step, or with 15 others after sixteen. An answer that is shorter is told at its end.
TEST(MessageLaws, FirstTokensWaitForOthersWhereTheEngineHasThemSo) {
  for (const bool stepping : {false, true}) {
    Scenario scenario = toys::served(policy_named("sglang"));
    scenario.serving.stepping = stepping;
    scenario.serving.stream_interval = 16;
    const Resources both = toys::trace({{0, 16, 65}, {3, 16, 7}});
    const Outcome at_once = evaluated(scenario, both);
    scenario.serving.first_message = FirstMessage::with_others;
    const Outcome waits = evaluated(scenario, both);
    for (const std::int64_t request : {0, 1}) {
      const RequestRow before = toys::row_of(at_once, request),
                       after = toys::row_of(waits, request);
      EXPECT_EQ(before.finish, after.finish);
      const double tokens = request == 0 ? 15 : 6;
      EXPECT_NEAR((after.first_token - before.first_token).value, tokens * kStep, 1e-9) << request;
    }
    EXPECT_NEAR(toys::row_of(waits, 1).first_token.value, toys::row_of(waits, 1).finish.value,
                1e-9);
  }
}

// The loop looks every so many decode steps after the last prompt. Whoever comes in between waits for it, and nobody waits where nothing
// decodes.
TEST(MessageLaws, RequestsWaitUntilTheEngineLooksForThem) {
  for (const bool stepping : {false, true}) {
    for (const std::int64_t interval : {1, 2, 7, 30}) {
      Scenario scenario = toys::served(policy_named("sglang"));
      scenario.serving.stepping = stepping;
      scenario.serving.receive_interval = interval;
      std::vector<toys::TraceRow> rows{{0, 16, 200}};
      for (int i = 1; i <= 20; ++i) rows.push_back({5.0 + i, 16, 1});
      rows.push_back({0.1234, 16, 1});
      std::ranges::sort(rows, {}, &toys::TraceRow::arrival);
      const Outcome outcome = evaluated(scenario, toys::trace(rows));
      const RequestRow first = toys::row_of(outcome, 0), later = toys::row_of(outcome, 1);
      const double steps = (later.scheduled - first.first_token).value / kStep;
      EXPECT_NEAR(steps, std::round(steps), 1e-6) << interval;
      EXPECT_EQ(std::int64_t(std::lround(steps)) % interval, 0) << interval;
      EXPECT_LE((later.scheduled - later.arrival).value, double(interval) * kStep + 1e-9);
      for (int i = 2; i <= 21; ++i) {
        const RequestRow alone = toys::row_of(outcome, i);
        EXPECT_NEAR((alone.scheduled - alone.arrival).value, 0, 1e-9) << interval;
      }
    }
  }
}

// Prompts wait a stated number of steps for others, while sequences decode; those that come meanwhile go with them, and so many that they
// fill the stated share of a step go at once.
TEST(MessageLaws, PromptsWaitForOthers) {
  for (const bool stepping : {false, true}) {
    Scenario scenario = toys::served(policy_named("no_evict"));
    scenario.serving.stepping = stepping;
    scenario.serving.max_num_batched_tokens = 100;
    const Resources three = toys::trace({{0, 16, 100}, {0.1234, 16, 5}, {0.1534, 60, 5}});
    const Outcome plain = evaluated(scenario, three);
    scenario.serving.batch_wait = 8;
    const Outcome waits = evaluated(scenario, three);
    const auto scheduled = [](const Outcome& outcome, std::int64_t request) {
      return toys::row_of(outcome, request).scheduled.value;
    };
    EXPECT_EQ(scheduled(waits, 0), scheduled(plain, 0));
    EXPECT_NEAR(scheduled(waits, 1), scheduled(plain, 1) + 8 * kStep, 1e-9);
    EXPECT_EQ(scheduled(waits, 2), scheduled(waits, 1));
    // 16 + 60 tokens and a decode are more than three quarters of a step: both go when the second comes.
    scenario.serving.batch_wait_share = 0.75;
    const Outcome enough = evaluated(scenario, three);
    EXPECT_LT(scheduled(enough, 1), scheduled(waits, 1) - kStep);
    EXPECT_EQ(scheduled(enough, 2), scheduled(enough, 1));
    EXPECT_LE(scheduled(enough, 2), 0.1534 + kStep + 1e-9);
    scenario.serving.batch_wait_share = 0;
    const Outcome nobody = evaluated(scenario, three);
    for (const std::int64_t request : {0, 1, 2}) {
      EXPECT_EQ(scheduled(nobody, request), scheduled(plain, request));
    }
  }
}

// An engine that looks less often is no faster to its first tokens, on average.
TEST(MessageLaws, LookingLessOftenMakesFirstTokensLater) {
  double before = 0;
  for (const std::int64_t interval : {1, 4, 16, 64}) {
    Scenario scenario = toys::served_at(10);
    scenario.serving.policy = policy_named("sglang");
    scenario.serving.receive_interval = interval;
    const double ttft = evaluated(scenario).metrics.ttft.value;
    EXPECT_GE(ttft, before * 0.999) << interval;
    before = ttft;
  }
}

}  // namespace
}  // namespace engine
