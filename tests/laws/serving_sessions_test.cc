// Sessions of calls that branch, and what is kept of them while a tool runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

// 10 ms steps; sessions of four turns, three calls each but the first.
Scenario agents() {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.load.arrivals = ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.rate = RequestsPerSecond{2};
  scenario.load.requests = 600;
  scenario.load.lengths = {.prompt = 40, .output = 8};
  scenario.load.turns = 4;
  scenario.load.branches = 3;
  scenario.load.think_time = Seconds{0.5};
  scenario.serving.prefix_caching = true;
  return scenario;
}

TEST(ServingSessions, CallsOfATurnComeTogetherAndTheNextWaitsForAll) {
  const Scenario scenario = agents();
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  ASSERT_EQ(outcome.requests.size(), 600u);
  constexpr std::int64_t calls = 10;  // of a session
  std::map<std::int64_t, std::vector<RequestRow>> sessions;
  for (const RequestRow& row : outcome.requests) {
    EXPECT_EQ(row.session, row.number / calls * calls);
    sessions[row.session].push_back(row);
  }
  for (const auto& [session, rows] : sessions) {
    double answered = rows[0].finish.value;
    std::int64_t history = rows[0].prompt_tokens + rows[0].output_tokens;
    EXPECT_EQ(rows[0].prompt_tokens, 40);
    for (std::size_t turn = 1; turn < 4; ++turn) {
      double last = 0;
      for (std::size_t call = 1 + (turn - 1) * 3; call < 1 + turn * 3; ++call) {
        EXPECT_EQ(rows[call].arrival, rows[1 + (turn - 1) * 3].arrival);
        EXPECT_GE(rows[call].arrival.value, answered);
        EXPECT_EQ(rows[call].prompt_tokens, history + 40);
        last = std::max(last, rows[call].finish.value);
      }
      answered = last;
      history += 40 + 3 * 8;  // one prompt, and what all calls answered
    }
  }
}

// A run that sees whole sessions has as many later turns as they have; one that is far behind answers first turns alone, and says so.
TEST(ServingSessions, HowManyLaterTurnsAreSeenIsTold) {
  Scenario scenario = agents();
  scenario.load.measure = MeasureKind::whole;
  const auto seen = [](const Scenario& point) {
    const Outcome outcome = evaluate(point);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics.later_turns_seen;
  };
  EXPECT_NEAR(seen(scenario), 1, 1e-12);
  scenario.load.branches = 1;
  EXPECT_NEAR(seen(scenario), 1, 1e-12);
  scenario.load.measure = MeasureKind::steady;
  scenario.load.requests = 0;
  scenario.load.rate = RequestsPerSecond{1};
  EXPECT_NEAR(seen(scenario), 1, 0.1);
  scenario.load.rate = RequestsPerSecond{1e5};
  scenario.serving.max_num_seqs = 1;
  EXPECT_LT(seen(scenario), 0.5);
  scenario.load.turns = 1;
  EXPECT_TRUE(std::isnan(seen(scenario)));
}

// Whoever read a prompt for somebody else still has it when the session goes on: all but the answers, which it never saw.
TEST(ServingSessions, ReadersKeepWhatTheyHaveRead) {
  for (const std::int64_t turns : {2, 5}) {
    Scenario scenario = agents();
    scenario.load.branches = 1;
    scenario.load.turns = turns;
    scenario.load.requests = 100 * turns;
    scenario.load.lengths = {.prompt = 64, .output = 16};
    scenario.prefill.present = true;
    fill_roles(scenario);
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    // Of the history of turn k, k - 1 prompts and answers, everything but the last answer, in whole blocks.
    double known = 0, history = 0;
    for (std::int64_t turn = 2; turn <= turns; ++turn) {
      known += double((turn - 1) * 80 - 16);
      history += double((turn - 1) * 80);
    }
    EXPECT_NEAR(outcome.metrics.history_hit_rate, known / history, 0.02) << turns;
  }
}

// With room for everything, calls find all that was there before their turn, but for a block that is not full.
TEST(ServingSessions, CallsShareTheHistory) {
  Scenario scenario = agents();
  scenario.serving.kv_blocks = 100'000;
  const Outcome outcome = evaluate(scenario);
  for (const RequestRow& row : outcome.requests) {
    const std::int64_t call = row.number - row.session;
    if (call == 0) continue;
    // Of the turn before, answers of other calls than the first are new.
    const std::int64_t others = call > 3 ? 2 * 8 : 0;
    EXPECT_GE(row.cached_tokens, row.prompt_tokens - 40 - others - 1 - 4) << row.number;
  }
  EXPECT_GT(outcome.metrics.history_hit_rate, 0.75);
}

TEST(ServingSessions, AClosedLoopBranchesToo) {
  Scenario scenario = agents();
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 5;
  const Outcome outcome = evaluate(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_GE(outcome.metrics.requests_finished, 600);
  EXPECT_LE(outcome.metrics.requests_finished, 600 + 5 * 3);
}

// Cache of sessions that go on outlives that of sessions that are over.
TEST(ServingSessions, PinnedCacheIsGivenUpLast) {
  Scenario scenario = agents();
  scenario.load.think_time = Seconds{3};
  scenario.load.rate = RequestsPerSecond{3};
  scenario.load.requests = 3000;
  scenario.serving.kv_blocks = 1000;
  const Metrics plain = evaluate(scenario).metrics;
  scenario.serving.retention.policy = Retention::pinned;
  const Metrics pinned = evaluate(scenario).metrics;
  EXPECT_LT(plain.history_hit_rate, 0.7);
  EXPECT_GT(pinned.history_hit_rate, plain.history_hit_rate + 0.05);
  // With room for all of it there is nothing to choose.
  scenario.serving.kv_blocks = 100'000;
  const Metrics all_pinned = evaluate(scenario).metrics;
  scenario.serving.retention.policy = Retention::lru;
  EXPECT_EQ(evaluate(scenario).metrics.ttft_p99, all_pinned.ttft_p99);
}

TEST(ServingSessions, WhatNobodyUsesForATimeIsGone) {
  Scenario scenario = agents();
  scenario.serving.kv_blocks = 100'000;
  scenario.load.requests = 6000;
  const Metrics kept = evaluate(scenario).metrics;
  scenario.serving.retention = {.policy = Retention::ttl, .ttl = Seconds{1e9}};
  EXPECT_EQ(evaluate(scenario).metrics.ttft_p99, kept.ttft_p99);
  EXPECT_EQ(evaluate(scenario).metrics.history_hit_rate, kept.history_hit_rate);
  // Tools take half a second in the mean: exp(-1) of them take longer.
  scenario.serving.retention.ttl = Seconds{0.5};
  const Metrics some = evaluate(scenario).metrics;
  EXPECT_NEAR(some.history_hit_rate / kept.history_hit_rate, 1 - std::exp(-1), 0.05);
  scenario.serving.retention.ttl = Seconds{1e-6};
  EXPECT_LT(evaluate(scenario).metrics.history_hit_rate, 0.01);
}

// Random loads that branch: tokens are conserved, and single steps give the same.
TEST(ServingSessions, TheClosedFormEqualsStepping) {
  for (std::uint64_t number = 0; number < 150; ++number) {
    toys::Laboratory lab(toys::random_case(number));
    toys::Dice dice(77'000'000 + number);
    Scenario& scenario = lab.made.scenario;
    if (scenario.load.arrivals == ArrivalKind::trace) scenario.load.arrivals = ArrivalKind::poisson;
    scenario.load.turns = dice.whole(2, 4);
    scenario.load.branches = dice.whole(1, 4);
    scenario.serving.prefix_caching = true;
    scenario.serving.retention = {.policy = dice.one_of<Retention>(),
                                  .ttl = Seconds{dice.between(0.001, 0.2)}};
    const ServingStats::Summary fast = lab.run();
    std::map<std::int64_t, RequestRow> rows;
    for (const RequestRow& row : lab.rows) rows[row.number] = row;
    scenario.serving.stepping = true;
    const ServingStats::Summary slow = lab.run();
    const std::string which = "case " + std::to_string(number);
    EXPECT_EQ(fast.finished, slow.finished) << which;
    EXPECT_EQ(fast.tokens_in, slow.tokens_in) << which;
    for (const RequestRow& row : lab.rows) {
      const RequestRow& other = rows[row.number];
      EXPECT_EQ(row.cached_tokens, other.cached_tokens) << which;
      if (row.end != RequestEnd::finished) continue;
      EXPECT_NEAR(row.finish.value / other.finish.value, 1, 1e-9) << which;
    }
    for (const Replica& replica : lab.sim.replicas()) {
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
    }
    ASSERT_FALSE(HasFailure());
  }
}

// Clients that fill half of the cache do so however many calls each makes at a time.
TEST(ServingSessions, AShareOfTheCacheCountsAllCalls) {
  for (const bool caching : {true, false}) {
    for (const std::int64_t branches : {1, 2, 4}) {
      Scenario scenario = agents();
      scenario.load.arrivals = ArrivalKind::closed;
      scenario.load.kv_fraction = 0.5;
      scenario.load.branches = branches;
      scenario.load.think_time = Seconds{0};
      scenario.load.lengths = {.prompt = 100, .output = 40};
      scenario.serving.kv_blocks = 4000;
      scenario.serving.prefix_caching = caching;
      const Outcome outcome = evaluate(scenario);
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      EXPECT_NEAR(outcome.metrics.kv_use, 0.5, 0.12) << branches << " " << caching;
    }
  }
}

}  // namespace
}  // namespace engine
