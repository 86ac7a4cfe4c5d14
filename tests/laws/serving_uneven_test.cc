// Unequal contexts: never faster than equal ones, and no different where there are none.
#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "tests/support/random_load.h"

namespace engine {
namespace {

using Values = std::array<std::uint64_t, sizeof(Metrics) / sizeof(double)>;

// A small fitted machine whose decodes are given as many parts each, and take turns.
toys::RandomCase uneven_case(std::uint64_t number) {
  toys::RandomCase made = toys::random_case(number);
  made.scenario.model = toys::model();
  made.scenario.device.multiprocessors = 8;
  made.scenario.host = toys::no_host();
  made.scenario.serving.decode_parts = DecodeParts::even;
  made.resources.calibrations.by_name["transfer"] = toys::shared_transfer();
  return made;
}

TEST(UnevenContexts, OfAStepAreNeverFaster) {
  toys::RandomCase made = uneven_case(1);
  made.scenario.task = Task::step;
  for (const std::int64_t batch : {1, 2, 16, 64, 300}) {
    made.scenario.step = {.batch = batch, .context = 500};
    const Outcome equal = evaluate(made.scenario, made.resources);
    ASSERT_EQ(equal.status, Status::ok) << equal.reason;
    made.scenario.step.longest_context = 500;
    EXPECT_EQ(std::bit_cast<Values>(evaluate(made.scenario, made.resources).metrics),
              std::bit_cast<Values>(equal.metrics));
    Seconds before = equal.metrics.step_time;
    for (std::int64_t longest = 600; longest <= batch * 499 + 1; longest *= 2) {
      made.scenario.step.longest_context = longest;
      const Seconds time = evaluate(made.scenario, made.resources).metrics.step_time;
      EXPECT_GE(time, before) << batch << " " << longest;
      before = time;
    }
    if (batch >= 16) {
      EXPECT_GT(before, equal.metrics.step_time) << batch;
    }
  }
}

// Requests of one length that come together stay alike to the end: not a bit may differ.
TEST(UnevenContexts, EqualOnesTakeTheTimeTheyTook) {
  for (const PolicyName policy : {policy_named("vllm_v1"), policy_named("static")}) {
    toys::RandomCase made{toys::served(policy),
                          toys::trace({{0, 40, 30}, {0, 40, 30}, {0, 40, 30}})};
    made.resources.calibrations.by_name["transfer"] = toys::shared_transfer();
    made.scenario.device.multiprocessors = 1;
    made.scenario.host = toys::no_host();
    made.scenario.serving.decode_parts = DecodeParts::by_length;
    const Outcome balanced = evaluate(made.scenario, made.resources);
    made.scenario.serving.decode_parts = DecodeParts::even;
    const Outcome even = evaluate(made.scenario, made.resources);
    EXPECT_EQ(std::bit_cast<Values>(even.metrics), std::bit_cast<Values>(balanced.metrics));
    EXPECT_EQ(even.kernels, balanced.kernels);
  }
}

// One long request among short ones: each decode step takes longer by its overhang, no more, and the
// kernels table says where that went.
TEST(UnevenContexts, TheLongestIsPaidForInAttention) {
  toys::RandomCase made{toys::served(policy_named("static")),
                        toys::trace({{0, 400, 3}, {0, 40, 3}, {0, 40, 3}})};
  made.resources.calibrations.by_name["transfer"] = toys::shared_transfer();
  made.scenario.device.multiprocessors = 1;
  made.scenario.host = toys::no_host();
  made.scenario.serving.decode_parts = DecodeParts::by_length;
  const Metrics balanced = evaluate(made.scenario, made.resources).metrics;
  made.scenario.serving.decode_parts = DecodeParts::even;
  const Metrics even = evaluate(made.scenario, made.resources).metrics;
  // Two decode steps; the longest has 400 - 160 keys more than the mean, 10 layers, 45 ns each.
  const double overhang = 2 * 240 * 10 * 45e-9;
  EXPECT_NEAR((even.makespan - balanced.makespan).value, overhang, 1e-12);
  EXPECT_NEAR((even.attention_time - balanced.attention_time).value, overhang, 1e-12);
}

TEST(UnevenContexts, LastLongerUnderEveryPolicy) {
  int longer = 0;
  for (std::uint64_t number = 0; number < 100; ++number) {
    toys::RandomCase made = uneven_case(number);
    // Everybody is there from the start: no accident of arrivals can make slower steps worth it.
    made.scenario.load.arrivals = ArrivalKind::trace;
    made.scenario.load.turns = 1;
    made.scenario.load.warmup = made.scenario.load.window = Seconds{0};
    made.scenario.serving.max_num_seqs = 40;
    made.scenario.serving.kv_blocks = 0;
    auto all_at_once = std::make_shared<Trace>(*made.resources.traces["toy"]);
    std::ranges::fill(all_at_once->arrival, 0.0);
    made.resources.traces["toy"] = all_at_once;
    const double even = evaluate(made.scenario, made.resources).metrics.makespan.value;
    made.scenario.serving.decode_parts = DecodeParts::by_length;
    const double balanced = evaluate(made.scenario, made.resources).metrics.makespan.value;
    EXPECT_GE(even, balanced * (1 - 1e-12)) << number;
    longer += even > balanced * 1.001;
  }
  EXPECT_GT(longer, 50);
}

}  // namespace
}  // namespace engine
