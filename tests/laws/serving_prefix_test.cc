// Laws of prefix caching: what requests have in common is found, whatever their lengths.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/workload/request_source.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

Scenario cached_chat(LengthKind distribution, std::int64_t shared) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.prefix_caching = true;
  scenario.serving.kv_blocks = 100'000;
  scenario.serving.max_num_batched_tokens = 100'000;
  scenario.load.arrivals = ArrivalKind::poisson;
  scenario.load.trace.clear();
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.requests = 2000;
  scenario.load.shared_prefix = shared;
  Lengths& lengths = scenario.load.lengths;
  lengths.distribution = distribution;
  lengths.prompt = 120;
  lengths.output = 4;
  lengths.prompt_cv = distribution == LengthKind::uniform ? 0.5 : 0.8;
  lengths.prompt_max = 800;
  return scenario;
}

TEST(ServingPrefix, TheCommonPartIsFoundWhateverTheLengths) {
  for (const LengthKind distribution :
       {LengthKind::fixed, LengthKind::uniform, LengthKind::lognormal, LengthKind::zipf}) {
    for (const std::int64_t shared : {4, 50, 100, 121, 400, 5000}) {
      const Outcome outcome = evaluate(cached_chat(distribution, shared));
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      // Whole blocks of four tokens of what is shared, never the last token of a prompt.
      double tokens = 0, common = 0, own = 0;
      for (const RequestRow& row : outcome.requests) {
        tokens += double(row.prompt_tokens);
        common += double(std::min(shared, row.prompt_tokens - 1) / 4 * 4);
        own += double(row.cached_tokens);
        EXPECT_LE(row.cached_tokens, std::min(shared, row.prompt_tokens - 1));
      }
      // The first requests find less: somebody has to compute it.
      EXPECT_NEAR(outcome.metrics.prefix_hit_rate, common / tokens, 0.02)
          << name_of(distribution) << ", " << shared;
      EXPECT_NEAR(own, outcome.metrics.prefix_hit_rate * tokens, 1e-6 * tokens);
    }
  }
}

// However many share a prefix, it lies in the cache once.
TEST(ServingPrefix, TheCommonPartFillsTheCacheOnce) {
  for (const std::int64_t pp : {1, 2}) {
    for (const std::int64_t shared : {0, 64, 112}) {
      Scenario scenario = cached_chat(LengthKind::fixed, shared);
      scenario.parallel.pp = pp;
      scenario.serving.kv_blocks = 400;
      scenario.load.lengths.output = 40;
      scenario.load.rate = RequestsPerSecond{200};
      scenario.load.measure = MeasureKind::whole;
      const Metrics figures = evaluate(scenario).metrics;
      EXPECT_GT(figures.kv_use, 0);
      EXPECT_LE(figures.kv_use, figures.kv_peak) << shared;
    }
  }
}

TEST(ServingPrefix, SessionsFindTheirHistoryAndTheSharedPart) {
  // First prompts are shorter or longer than the shared prefix; later ones re-send everything.
  Scenario scenario = cached_chat(LengthKind::lognormal, 100);
  scenario.load.turns = 6;
  scenario.load.rate = RequestsPerSecond{3};
  scenario.model.max_context = 1 << 20;
  const Outcome outcome = evaluate(scenario);
  double tokens = 0, found = 0, expected = 0;
  std::int64_t turn = 0, before = 0;
  for (const RequestRow& row : outcome.requests) {  // sessions are numbered together
    turn = row.number == row.session ? 0 : turn + 1;
    const std::int64_t common =
        turn == 0 ? std::min<std::int64_t>(100, row.prompt_tokens - 1) : before;
    tokens += double(row.prompt_tokens);
    found += double(row.cached_tokens);
    expected += double(common / 4 * 4);
    before = row.prompt_tokens + row.output_tokens - 1;
  }
  EXPECT_GT(found / tokens, 0.7);
  EXPECT_NEAR(found / expected, 1, 0.01);
}

// A search ends runs that it has seen enough of, with requests inside that hold prefixes. The next run starts from nothing.
TEST(ServingPrefix, ARunThatWasEndedEarlyLeavesNothingBehind) {
  Scenario scenario = cached_chat(LengthKind::lognormal, 0);
  scenario.load.requests = 0;
  scenario.load.turns = 10;
  scenario.load.think_time = Seconds{3};
  scenario.serving.kv_blocks = 2'000;
  scenario.capacity.slo.ttft.p95 = Seconds{0.5};
  const Outcome searched = evaluate(scenario);
  ASSERT_EQ(searched.status, Status::ok) << searched.reason;
  scenario.load.rate = searched.metrics.capacity;
  scenario.slo = scenario.capacity.slo;
  scenario.capacity.slo = {};
  const Outcome alone = evaluate(scenario);
  EXPECT_EQ(alone.metrics.prefix_hit_rate, searched.metrics.prefix_hit_rate);
  EXPECT_EQ(alone.metrics.ttft_p95, searched.metrics.ttft_p95);
}

// Engines give up the oldest free block, whoever left it: answers that nobody asks for again push prefixes out, though there is
// always room for who runs.
TEST(ServingPrefix, AnswersPushOutWhatIsNotAskedForInTime) {
  double before = 1;
  for (const std::int64_t output : {4, 40, 200, 1000}) {
    Scenario scenario = cached_chat(LengthKind::fixed, 100);
    scenario.load.prefix_groups = 20;
    scenario.load.lengths.output = output;
    scenario.load.rate = RequestsPerSecond{0.001};
    scenario.serving.kv_blocks = 1'000;
    const Metrics tight = evaluate(scenario).metrics;
    EXPECT_LT(tight.kv_peak, 0.9) << output;
    EXPECT_LE(tight.prefix_hit_rate, before) << output;
    before = tight.prefix_hit_rate;
    // All prefixes take 500 blocks, and a request leaves five and its answer behind.
    scenario.serving.kv_blocks = 100'000;
    EXPECT_GT(evaluate(scenario).metrics.prefix_hit_rate, 0.8) << output;
  }
  // Between two requests for one of 20 prefixes come 19 others on average, each with 25 + 5 + 250 blocks; a thousand hold three.
  EXPECT_GT(before, 0.05);
  EXPECT_LT(before, 0.25);
}

TEST(ServingPrefix, MoreInCommonIsNeverFoundLess) {
  double before = 0;
  for (const std::int64_t shared : {0, 20, 60, 90, 110, 130, 200, 1000}) {
    const double rate =
        evaluate(cached_chat(LengthKind::lognormal, shared)).metrics.prefix_hit_rate;
    EXPECT_GE(rate, before) << shared;
    before = rate;
  }
}

}  // namespace
}  // namespace engine
