// Rows of requests and moments: they say the same as the figures of their point.
#include "engine/serving/figures/serving_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tests/support/serving_toys.h"

namespace engine {
namespace {

// A minute of load on two replicas, forty seconds of it measured.
Scenario busy_minute() {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.replicas = 2;
  scenario.load.arrivals = ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.requests = 1200;
  scenario.load.warmup = Seconds{10};
  scenario.load.window = Seconds{40};
  scenario.load.lengths.distribution = LengthKind::lognormal;
  scenario.load.lengths.prompt = 40;
  scenario.load.lengths.output = 20;
  return scenario;
}

// As Samples does: by rank, between the two nearest.
double percentile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  const double rank = share * double(values.size() - 1);
  const auto below = std::size_t(rank);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - double(below)) * (values[above] - values[below]);
}

TEST(RequestRows, GiveThePercentilesOfTheirPoint) {
  const Outcome outcome = evaluate(busy_minute());
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  ASSERT_EQ(outcome.requests.size(), 1200u);
  std::vector<double> ttft, e2e, queue;
  for (std::size_t i = 0; i < outcome.requests.size(); ++i) {
    const RequestRow& row = outcome.requests[i];
    EXPECT_EQ(row.number, std::int64_t(i));
    EXPECT_EQ(row.measured, row.arrival.value >= 10 && row.arrival.value < 50);
    if (!row.measured) continue;
    ttft.push_back((row.first_token - row.arrival).value);
    e2e.push_back((row.finish - row.arrival).value);
    queue.push_back((row.scheduled - row.arrival).value);
  }
  const Metrics& metrics = outcome.metrics;
  EXPECT_NEAR(percentile(ttft, 0.99), metrics.ttft_p99.value, 1e-9);
  EXPECT_NEAR(percentile(e2e, 0.50), metrics.e2e_p50.value, 1e-9);
  EXPECT_NEAR(percentile(queue, 0.90), metrics.queue_p90.value, 1e-9);
}

TEST(RequestRows, GiveTheTokensOfAUser) {
  // One request: a prompt step and three decodes of 10 ms each.
  const Outcome outcome = evaluate(toys::served(policy_named("vllm_v1")), toys::trace({{0, 8, 4}}));
  EXPECT_NEAR(outcome.metrics.output_per_user.value, 1 / 0.01, 1e-6);
  EXPECT_NEAR(outcome.metrics.total_per_user.value, (8 + 4) / 0.04, 1e-6);
}

TEST(RequestRows, ARequestThatNeverFitsHasNoTimes) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.kv_blocks = 10;  // 40 tokens
  const Outcome outcome = evaluate(scenario, toys::trace({{0, 8, 2}, {1, 100, 2}, {2, 8, 2}}));
  ASSERT_EQ(outcome.requests.size(), 3u);
  const RequestRow& refused = outcome.requests[1];
  EXPECT_EQ(refused.end, RequestEnd::refused);
  EXPECT_EQ(refused.arrival.value, 1);
  EXPECT_EQ(refused.prompt_tokens, 100);
  EXPECT_TRUE(std::isnan(refused.scheduled.value));
  EXPECT_TRUE(std::isnan(refused.finish.value));
  EXPECT_EQ(outcome.requests[2].end, RequestEnd::finished);
}

TEST(RequestRows, NobodyAskedNobodyGets) {
  Scenario scenario = busy_minute();
  scenario.output = {};
  const Outcome outcome = evaluate(scenario);
  EXPECT_TRUE(outcome.requests.empty());
  EXPECT_TRUE(outcome.timeline.empty());
}

TEST(TimelineRows, CountEveryTokenOnce) {
  Scenario scenario = busy_minute();
  scenario.output.timeline = Seconds{0.1};
  const Outcome outcome = evaluate(scenario);
  double tokens = 0, made = 0;
  double last = 0;
  for (const TimelineRow& row : outcome.timeline) {
    tokens += row.output.value * 0.1;
    last = row.time.value;
    EXPECT_LE(row.decoding, row.running);
  }
  ASSERT_EQ(outcome.timeline.size() % 2, 0u);  // two replicas
  EXPECT_NEAR(last, std::floor(outcome.metrics.makespan.value * 10) / 10, 1e-9);
  double early = 0;
  for (const RequestRow& row : outcome.requests) {
    made += double(row.output_tokens);
    if (row.finish.value <= last) early += double(row.output_tokens);
  }
  EXPECT_GE(tokens, early);
  EXPECT_LE(tokens, made);
}

TEST(TimelineRows, ALongTimelineKeepsEverySecondMoment) {
  Scenario scenario = busy_minute();
  scenario.output.timeline = Seconds{0.1};
  const std::vector<TimelineRow> all = evaluate(scenario).timeline;
  const std::size_t moments = all.size() / 2;
  ASSERT_GT(moments, 500u);
  scenario.output.timeline_moments = std::int64_t(moments);
  EXPECT_EQ(evaluate(scenario).timeline.size() / 2,
            moments / 2 * 2 == moments ? moments : moments / 2);
  // A quarter of them and one less: every eighth moment, with the mean of the rates between.
  scenario.output.timeline_moments = std::int64_t(moments) / 4 - 1;
  const std::vector<TimelineRow> few = evaluate(scenario).timeline;
  ASSERT_EQ(few.size() / 2, moments / 8);
  for (std::size_t m = 0; m < few.size() / 2; ++m) {
    for (std::size_t r = 0; r < 2; ++r) {
      const TimelineRow& kept = few[2 * m + r];
      const TimelineRow& original = all[2 * (8 * m + 7) + r];
      EXPECT_EQ(kept.time, original.time);
      EXPECT_EQ(kept.running, original.running);
      EXPECT_EQ(kept.waiting, original.waiting);
      EXPECT_EQ(kept.kv_blocks, original.kv_blocks);
      double rate = 0;
      for (std::size_t k = 0; k < 8; ++k) rate += all[2 * (8 * m + k) + r].output.value / 8;
      EXPECT_NEAR(kept.output.value, rate, 1e-9);
    }
  }
}

TEST(TimelineRows, SayWhatIsThere) {
  // One request: 8 prompt tokens and 4 outputs in steps of 10 ms, blocks of 4.
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.output.timeline = Seconds{0.015};
  const Outcome outcome = evaluate(scenario, toys::trace({{0, 8, 4}}));
  ASSERT_EQ(outcome.timeline.size(), 2u);  // it ends at 40 ms
  const TimelineRow& first = outcome.timeline[0];
  EXPECT_EQ(first.running, 1);
  EXPECT_EQ(first.waiting, 0);
  EXPECT_EQ(first.decoding, 1);
  EXPECT_EQ(first.batch, 1);
  EXPECT_EQ(first.kv_blocks, 3);  // 8 tokens, and the one being made
  EXPECT_EQ(first.kv_use, 0.003);
  EXPECT_NEAR(first.output.value, 1 / 0.015, 1e-9);
  EXPECT_NEAR(outcome.timeline[1].output.value, 2 / 0.015, 1e-9);
}

TEST(TimelineRows, CountWhoIsInThePresentStep) {
  // Steps of 10 ms and 9 tokens: the first prompt; its decode beside the second prompt; both decodes
  // and a prompt of one token, after which the first request goes on alone.
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.max_num_batched_tokens = 9;
  scenario.output.timeline = Seconds{0.0041};
  const Outcome outcome = evaluate(scenario, toys::trace({{0, 9, 4}, {0, 8, 2}, {0.011, 1, 1}}));
  std::vector<std::int64_t> batches;
  for (const TimelineRow& row : outcome.timeline) batches.push_back(row.batch);
  EXPECT_EQ(batches, (std::vector<std::int64_t>{1, 1, 2, 2, 3, 3, 3, 1, 1}));
}

TEST(RequestRows, NameTheTenant) {
  Scenario scenario = busy_minute();
  scenario.load.tenants = 3;
  std::array<int, 3> seen{};
  for (const RequestRow& row : evaluate(scenario).requests) ++seen.at(std::size_t(row.tenant));
  for (const int count : seen) EXPECT_GT(count, 300);
}

}  // namespace
}  // namespace engine
