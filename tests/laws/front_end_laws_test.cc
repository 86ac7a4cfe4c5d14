// The process that streams tokens to clients: the engine runs ahead of it, and tokens queue in front of it.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/serving/lane/front_end.h"
#include "tests/support/random_load.h"

namespace engine {
namespace {

TEST(FrontEnd, ManyStepsAtOnceAreAsManyOneByOne) {
  for (std::uint64_t number = 0; number < 1000; ++number) {
    toys::Dice dice(number);
    const LateTokens late = dice.chance(0.5) ? LateTokens::join_it : LateTokens::queue_up;
    FrontEnd one(late), other(late);
    const double busy = dice.between(0, 3);
    one.take(0, {.further = busy});
    other.take(0, {.further = busy});
    const std::int64_t steps = dice.whole(1, 50);
    const double step = dice.between(0, 0.2), rise = dice.chance(0.5) ? dice.between(0, 0.01) : 0;
    const double seconds = dice.between(0, 0.3);
    double now = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      now += step + rise * double(i);
      one.take(now, {.further = seconds});
    }
    other.take_steps(step, now, steps, seconds);
    EXPECT_NEAR(one.told(0), other.told(0), 1e-9) << number;
  }
}

// Whether a step is noted before or after what comes at its end, and whether alone or after others: the same is told.
TEST(FrontEnd, WhatComesFromElsewhereDoesNotWaitForAStepThatEndsThen) {
  constexpr double step = 0.1, tokens = 0.3;
  FrontEnd noted_before(LateTokens::queue_up), noted_after(LateTokens::queue_up);
  for (int i = 1; i <= 3; ++i) noted_before.take(step * i, {.further = tokens});
  noted_after.take_steps(step, 2 * step, 2, tokens);
  for (const double off : {-1e-12, 0.0, 1e-12}) {
    EXPECT_NEAR(noted_before.told_from_elsewhere(3 * step + off), step + 2 * tokens, 1e-9);
    EXPECT_NEAR(noted_after.told_from_elsewhere(3 * step + off), step + 2 * tokens, 1e-9);
  }
  EXPECT_NEAR(noted_before.told_from_elsewhere(3 * step + 1e-6), step + 3 * tokens, 1e-9);
}

// Sixteen clients, steps of 10 ms, answers of 20 tokens: a step makes tokens for 16 times what the front end takes for one.
Scenario sixteen_clients(double front_end) {
  Scenario scenario = toys::served_at(1);
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 16;
  scenario.host.front_end_merges = false;
  scenario.host.front_end_per_message = Seconds{front_end};
  return scenario;
}

TEST(FrontEndLaws, ThroughputIsThatOfTheSlowerOfTheTwo) {
  const double engine = evaluate(sixteen_clients(0), {}).metrics.output.value;
  for (const double front_end : {1e-5, 1e-4, 1e-3, 3e-3, 1e-2}) {
    const Metrics metrics = evaluate(sixteen_clients(front_end), {}).metrics;
    const double rate = std::min(engine, 1 / front_end);
    EXPECT_LE(metrics.output.value, rate * 1.02) << front_end;
    // Where both take about as long, clients wait for one after the other.
    EXPECT_GE(metrics.output.value,
              rate / (1 + std::min(front_end * engine, 1 / (front_end * engine))))
        << front_end;
  }
}

TEST(FrontEndLaws, OneThatKeepsUpDelaysTokensByItsTimeForAStep) {
  const Metrics without = evaluate(sixteen_clients(0), {}).metrics;
  const Metrics with = evaluate(sixteen_clients(1e-4), {}).metrics;
  EXPECT_GE(with.ttft.value, without.ttft.value + 1e-4);
  EXPECT_LE(with.ttft.value, without.ttft.value + 16e-4 + 1e-9);
  EXPECT_NEAR(with.tpot / without.tpot, 1, 0.01);
}

// Requests that come one by one: the engine has a step for each token, whatever waits in front of the clients.
TEST(FrontEndLaws, TheEngineDoesNotWaitForIt) {
  Scenario scenario = toys::served_at(20);
  const Metrics without = evaluate(scenario, {}).metrics;
  scenario.host.front_end_merges = false;
  scenario.host.front_end_per_message =
      Seconds{2e-3};  // 500 tokens a second, where 400 are asked for
  const Outcome busy = evaluate(scenario, {});
  EXPECT_NEAR(busy.metrics.utilization / without.utilization, 1, 1e-6);
  EXPECT_GT(busy.metrics.ttft.value, without.ttft.value + 2e-3);
  EXPECT_NEAR(busy.metrics.output / without.output, 1, 0.03);
  EXPECT_NE(busy.saturation, Saturation::overloaded);
}

TEST(FrontEndLaws, MoreThanItCanStreamIsAnOverload) {
  Scenario scenario = toys::served_at(40);  // of the 80 that the engine could serve
  scenario.host.front_end_merges = false;
  scenario.host.front_end_per_message = Seconds{2e-3};  // 25 answers a second
  const Outcome outcome = evaluate(scenario, {});
  EXPECT_EQ(outcome.saturation, Saturation::overloaded);
  EXPECT_NEAR(outcome.metrics.output.value, 500, 10);
}

// KV lands in the middle of a stretch of steps: its first token queues behind those of the steps that have ended.
TEST(FrontEndLaws, FirstTokensOfCarriedAnswersQueueBehindStepsThatHaveEnded) {
  double queued = 0;
  for (const bool experts : {false, true}) {
    for (const TransferInitiative initiative :
         {TransferInitiative::pull, TransferInitiative::push}) {
      for (const double front_end : {1e-4, 1e-3, 3e-3}) {
        Scenario scenario = toys::served_at(30);
        if (experts) {
          scenario.model = toys::mixture();
          scenario.parallel.dp = scenario.parallel.ep = 2;
        }
        scenario.host.front_end_merges = false;
        scenario.host.front_end_per_message = Seconds{front_end};
        scenario.load.lengths = {
            .distribution = LengthKind::lognormal, .prompt = 200, .output = 60};
        scenario.load.requests = 300;
        scenario.transfer.initiative = initiative;
        scenario.prefill.present = true;
        fill_roles(scenario);
        const Outcome fast = evaluate(scenario);
        ASSERT_EQ(fast.status, Status::ok) << fast.reason;
        scenario.serving.stepping = true;
        const Outcome slow = evaluate(scenario);
        EXPECT_NEAR(fast.metrics.ttft / slow.metrics.ttft, 1, 1e-9) << experts << front_end;
        EXPECT_NEAR(fast.metrics.ttft_p99 / slow.metrics.ttft_p99, 1, 1e-9);
        EXPECT_NEAR(fast.metrics.tpot / slow.metrics.tpot, 1, 1e-9);
        scenario.host.front_end_merges = false;
        scenario.host.front_end_per_message = Seconds{0};
        queued += (slow.metrics.ttft - evaluate(scenario).metrics.ttft).value;
      }
    }
  }
  EXPECT_GT(queued, 0.001);
}

TEST(FrontEndLaws, AFasterOneIsNeverSlowerToAnswer) {
  for (std::uint64_t number = 0; number < 100; ++number) {
    toys::RandomCase made = toys::random_case(number);
    made.scenario.load.arrivals = ArrivalKind::poisson;  // whose requests come whatever is answered
    made.scenario.load.turns = 1;
    double before = 0;
    for (const double front_end : {0.0, 1e-4, 1e-3, 1e-2}) {
      made.scenario.host.front_end_merges = false;
      made.scenario.host.front_end_per_message = Seconds{front_end};
      const Outcome outcome = evaluate(made.scenario, made.resources);
      if (outcome.status != Status::ok) break;
      double last = 0;
      for (const RequestRow& row : outcome.requests) {
        EXPECT_LE(row.first_token, row.finish) << number;
        last = std::max(last, row.finish.value);
      }
      EXPECT_GE(last, before) << number << ", " << front_end;
      before = last;
    }
  }
}

}  // namespace
}  // namespace engine
