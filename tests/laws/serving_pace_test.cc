// Lanes that make several tokens a step: the closed form equals single stepping at any pace, and sums
// over steps equal what one counts.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/serving_laboratory.h"

namespace engine {
namespace {

using toys::Laboratory;

constexpr Pace kPaces[] = {{12, 5, 4}, {2, 1, 2}, {7, 3, 3}, {3, 2, 2}, {1, 1, 3}, {101, 64, 5}};

TEST(Pace, SumsAreWhatOneCounts) {
  for (const Pace& pace : kPaces) {
    for (std::int64_t from = 0; from < 130; from += 13) {
      double sum = 0, squares = 0;
      std::int64_t made = 0;
      for (std::int64_t count = 0; count < 150; ++count) {
        EXPECT_EQ(pace.made(from, count), made);
        EXPECT_EQ(pace.sum(from, count), sum);
        EXPECT_NEAR(pace.squares(from, count), squares, 1e-9 * squares);
        sum += double(made);
        squares += double(made * made);
        const std::int64_t next = pace.made_by(from + count + 1) - pace.made_by(from + count);
        EXPECT_GE(next, 1);
        EXPECT_LE(next, pace.most());
        for (std::int64_t token = made + 1; token <= made + next; ++token) {
          EXPECT_EQ(pace.steps_for(from, token), count + 1);
        }
        made += next;
      }
    }
  }
}

TEST(Pace, TheClosedFormEqualsStepping) {
  double wasted = 0, preempted = 0;
  for (std::uint64_t number = 0; number < 400; ++number) {
    toys::RandomCase made = toys::random_case(number);
    toys::Dice dice(55'000'000 + number);
    if (dice.chance(0.5)) {
      made.scenario.load.lengths = {.distribution = LengthKind::fixed,
                                    .prompt = dice.whole(1, 60),
                                    .output = dice.whole(1, 7)};
    }
    if (dice.chance(0.3)) made.scenario.serving.block_size = 1;
    Laboratory lab(std::move(made));
    const auto run = [&lab, number](bool stepping) {
      lab.made.scenario.serving.stepping = stepping;
      PoolSetup pool = lab.pool();
      pool.pace = kPaces[number % std::size(kPaces)];
      return lab.run({&pool, 1}, {});
    };
    const ServingStats::Summary fast = run(false);
    std::map<std::int64_t, RequestRow> rows;
    for (const RequestRow& row : lab.rows) rows[row.number] = row;
    const double gaps = lab.sim.stats().gap_count();
    const ServingStats::Summary slow = run(true);
    const std::string which = "case " + std::to_string(number);
    ASSERT_EQ(rows.size(), lab.rows.size()) << which;
    for (const RequestRow& row : lab.rows) {
      const RequestRow& other = rows[row.number];
      EXPECT_EQ(row.end, other.end) << which;
      EXPECT_EQ(row.preemptions, other.preemptions) << which;
      if (row.end != RequestEnd::finished) continue;
      EXPECT_NEAR(row.first_token.value / other.first_token.value, 1, 1e-9) << which;
      EXPECT_NEAR(row.finish.value / other.finish.value, 1, 1e-9) << which;
    }
    EXPECT_NEAR(fast.busy, slow.busy, 1e-9 * fast.busy) << which;
    EXPECT_EQ(fast.steps, slow.steps) << which;
    EXPECT_NEAR(fast.kv_token_seconds, slow.kv_token_seconds, 1e-9 * fast.kv_token_seconds)
        << which;
    EXPECT_EQ(fast.wasted_tokens, slow.wasted_tokens) << which;
    EXPECT_EQ(fast.kv_peak, slow.kv_peak) << which;
    EXPECT_NEAR(gaps, lab.sim.stats().gap_count(), 1e-6) << which;
    EXPECT_EQ(fast.tokens_in + fast.tokens_out + fast.tokens_refused, lab.offered_tokens())
        << which;
    for (const Replica& replica : lab.sim.replicas()) {
      EXPECT_EQ(replica.pool().free(), replica.pool().total()) << which;
    }
    ASSERT_FALSE(HasFailure());
    wasted += fast.wasted_tokens;
    preempted += fast.preemptions;
  }
  EXPECT_GT(wasted, 1000);
  EXPECT_GT(preempted, 100);
}

// Steps of 10 ms. After the prompt's token, 12 tokens in 5 steps come as 2, 2, 3, 2, 3.
TEST(Pace, ByHand) {
  for (std::int64_t output = 1; output <= 13; ++output) {
    Scenario scenario = toys::served(policy_named("vllm_v1"));
    toys::RandomCase made{scenario, toys::trace({{0, 8, std::int32_t(output)}})};
    Laboratory lab(std::move(made));
    PoolSetup pool = lab.pool();
    pool.pace = {12, 5, 4};
    const ServingStats::Summary summary = lab.run({&pool, 1}, {});
    const std::int64_t tokens_after[] = {1, 3, 5, 8, 10, 13};
    std::int64_t steps = 0;
    while (tokens_after[steps] < output) ++steps;
    EXPECT_NEAR(lab.rows[0].finish.value, 0.010 * double(steps + 1), 1e-9) << output;
    EXPECT_EQ(summary.wasted_tokens, double(tokens_after[steps] - output)) << output;
    // Room for the prompt and what was made, and for three more queries.
    const std::int64_t most = 8 + tokens_after[steps] - 1 + 3;
    EXPECT_EQ(summary.kv_peak, double((most + 3) / 4)) << output;
  }
}

}  // namespace
}  // namespace engine
