// Several answers to one prompt: read once, written several times, done with the last.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/evaluate.h"
#include "tests/support/serving_toys.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario sampled(std::int64_t samples) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.rate = RequestsPerSecond{5};
  scenario.load.requests = 200;
  scenario.load.lengths = {.prompt = 320, .output = 30};
  scenario.load.samples = samples;
  scenario.serving.prefix_caching = true;
  return scenario;
}

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

TEST(Answers, OneIsARequestAsAlways) {
  const Metrics one = figures(sampled(1));
  EXPECT_TRUE(std::isnan(one.answer_tokens));
  Scenario plain = sampled(1);
  plain.serving.prefix_caching = false;
  EXPECT_EQ(one.e2e, figures(plain).e2e);
}

TEST(Answers, ARequestIsAnsweredOnceWithAllItsTokens) {
  const Metrics four = figures(sampled(4));
  EXPECT_EQ(four.requests_finished, 200);
  EXPECT_NEAR(four.answer_tokens, 4 * 30, 1e-9);
  const Metrics one = figures(sampled(1));
  EXPECT_NEAR(four.output.value / one.output.value, 4, 0.3);
  EXPECT_GT(four.e2e, one.e2e);
  // The prompt is read once: all but its last tokens are found.
  EXPECT_GT(four.prefix_hit_rate, 0.7);
}

// Answers to one request stand side by side in the queue, however long it is: apart, its last one would wait for all who came
// meanwhile, and the prompt be read again. SGLang asks for them once the prompt has been read.
TEST(Answers, StandSideBySideInALongQueue) {
  const auto of_a_token = [](PolicyName policy, std::int64_t requests) {
    Scenario scenario = sampled(4);
    scenario.serving.policy = policy;
    scenario.serving.max_num_seqs = 16;
    scenario.load.rate = RequestsPerSecond{1000};
    scenario.load.requests = requests;
    scenario.load.measure = MeasureKind::whole;
    return figures(scenario).tpot.value;
  };
  for (const PolicyName policy :
       {policy_named("vllm_v1"), policy_named("vllm_v0"), policy_named("sarathi")}) {
    EXPECT_NEAR(of_a_token(policy, 1600) / of_a_token(policy, 400), 1, 0.1);
  }
  const PolicyName later = policy_named("sglang");
  EXPECT_GT(of_a_token(later, 1600) / of_a_token(later, 400), 2);
}

// By hand: every step takes 10 ms and blocks hold 4 tokens. A prompt of 8 tokens and 5 answers of 4: the prompt's two
// blocks once, and one block of each answer.
TEST(Answers, HoldThePromptOnceAndTheirOutputsEach) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.load.samples = 5;
  scenario.serving.prefix_caching = true;
  const Outcome outcome = evaluate(scenario, toys::trace({{0, 8, 4}}));
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  EXPECT_EQ(outcome.metrics.kv_peak * outcome.metrics.kv_blocks, 2 + 5);
  const RequestRow row = toys::row_of(outcome, 0);
  EXPECT_EQ(row.output_tokens, 20);
  // The first answer begins with the prompt, the others a step later; they need four steps, the last of which ends here.
  EXPECT_NEAR(row.first_token.value, 0.01, 1e-9);
  EXPECT_NEAR(row.finish.value, 0.05, 1e-9);
}

TEST(Answers, MoreOfThemTakeLongerAndNeverFewerTokens) {
  double tokens = 0, time = 0;
  for (const std::int64_t samples : {1, 2, 4, 8, 16}) {
    Scenario scenario = sampled(samples);
    scenario.load.lengths.distribution = LengthKind::lognormal;
    scenario.load.lengths.output_cv = 0.5;
    const Metrics figure = figures(scenario);
    EXPECT_GE(figure.e2e.value, time * 0.99) << samples;
    if (samples > 1) {
      EXPECT_GT(figure.answer_tokens, tokens) << samples;
      tokens = figure.answer_tokens;
    }
    time = figure.e2e.value;
  }
}

TEST(Answers, EveryStepOnItsOwnIsTheSame) {
  Scenario scenario = sampled(3);
  scenario.serving.kv_blocks = 300;
  const Metrics fast = figures(scenario);
  scenario.serving.stepping = true;
  const Metrics slow = figures(scenario);
  EXPECT_NEAR(fast.e2e.value, slow.e2e.value, 1e-9);
  EXPECT_NEAR(fast.ttft.value, slow.ttft.value, 1e-9);
}

TEST(Answers, AStatedNumberOfBlocksIsTheRoom) {
  Scenario scenario = sampled(1);
  const Metrics all = figures(scenario);
  scenario.serving.kv_blocks = 300;
  const Metrics few = figures(scenario);
  EXPECT_EQ(few.kv_capacity_tokens, 300 * double(scenario.serving.block_size));
  EXPECT_LT(few.max_batch, all.max_batch);
}

Scenario read_elsewhere(std::int64_t samples) {
  Scenario scenario = sampled(samples);
  scenario.prefill.present = true;
  fill_roles(scenario);
  scenario.transfer.link = {.bandwidth = BytesPerSecond{50e9}};
  return scenario;
}

// The prompt is read and carried once, whatever is written of it.
TEST(Answers, OfAPromptReadElsewhereShareItsWayToo) {
  for (const TransferInitiative initiative : {TransferInitiative::pull, TransferInitiative::push}) {
    Scenario scenario = read_elsewhere(1);
    scenario.transfer.initiative = initiative;
    const Metrics one = figures(scenario);
    scenario.load.samples = 4;
    const Metrics four = figures(scenario);
    EXPECT_EQ(four.requests_finished, 200);
    EXPECT_NEAR(four.answer_tokens, 4 * 30, 1e-9);
    EXPECT_NEAR(four.prefill_utilization / one.prefill_utilization, 1, 0.02);
    EXPECT_NEAR(four.transfer / one.transfer, 1, 0.05);
    EXPECT_NEAR(four.ttft / one.ttft, 1, 0.1);
    EXPECT_GT(four.e2e, one.e2e);
  }
}

// The first token of one answer is there when the prompt has been read; those of the others are written with the others.
TEST(Answers, OfOneTokenAreWrittenWhereverThePromptIsRead) {
  for (const TransferInitiative initiative : {TransferInitiative::pull, TransferInitiative::push}) {
    Scenario scenario = read_elsewhere(4);
    scenario.transfer.initiative = initiative;
    scenario.load.lengths.output = 1;
    const Metrics four = figures(scenario);
    EXPECT_EQ(four.requests_finished, 200);
    EXPECT_NEAR(four.answer_tokens, 4, 1e-9);
  }
}

// A share of the throughput is that share, however many answers there are.
TEST(Answers, CountInSharesOfTheThroughput) {
  for (const std::int64_t samples : {1, 2, 8}) {
    Scenario scenario = sampled(samples);
    scenario.load.requests = 1000;
    Scenario full = scenario;
    full.load.arrivals = ArrivalKind::closed;
    full.load.clients = 500;
    full.load.requests = 4000;
    scenario.load.throughput_fraction = 0.5;
    EXPECT_NEAR(figures(scenario).offered.value / figures(full).throughput.value, 0.5, 0.12)
        << samples;
  }
}

// Whoever fails, a request that is answered has all its answers.
TEST(Answers, GoOnAfterAFailure) {
  for (const bool elsewhere : {false, true}) {
    for (const AfterFailure kept : {AfterFailure::resume, AfterFailure::restart}) {
      Scenario scenario = elsewhere ? read_elsewhere(4) : sampled(4);
      scenario.serving.replicas = 2;
      scenario.serving.failures = {.mean_time_to_failure = Seconds{2},
                                   .mean_time_to_repair = Seconds{0.5},
                                   .attempts = 1000,
                                   .answers = kept};
      const Metrics metrics = figures(scenario);
      EXPECT_GT(metrics.requests_retried, 0);
      EXPECT_EQ(metrics.requests_finished, 200);
      EXPECT_NEAR(metrics.answer_tokens, 4 * 30, 1e-9);
      scenario.serving.failures.attempts = 1;
      const Metrics given_up = figures(scenario);
      EXPECT_GT(given_up.requests_failed, 0);
      EXPECT_EQ(given_up.requests_finished + given_up.requests_failed, 200);
    }
  }
}

TEST(Answers, WithoutASharedPromptThereAreNone) {
  Scenario scenario = sampled(2);
  scenario.serving.prefix_caching = false;
  EXPECT_EQ(evaluate(scenario).reason,
            "load.samples > 1 needs serving.prefix_caching: answers share their prompt through it");
  scenario = sampled(2);
  scenario.load.turns = 2;
  EXPECT_EQ(evaluate(scenario).reason,
            "load.samples > 1 cannot be combined with load.turns > 1: which answer goes on?");
}

// Attention of a step's prompts and decodes at the same time.
TEST(OverlappedAttention, IsNeverSlowerThanApartNorFasterThanTheLonger) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.requests = 300;
  scenario.load.lengths = {.prompt = 3000, .output = 60};
  scenario.serving.mixed_attention = MixedAttention::separate;
  const Outcome apart = evaluate(scenario);
  scenario.serving.mixed_attention = MixedAttention::overlapped;
  const Outcome together = evaluate(scenario);
  ASSERT_EQ(apart.status, Status::ok) << apart.reason;
  ASSERT_EQ(together.status, Status::ok) << together.reason;
  EXPECT_LT(together.metrics.attention_time, apart.metrics.attention_time);
  EXPECT_GT(together.metrics.attention_time * 1.23, apart.metrics.attention_time);
  EXPECT_LE(together.metrics.tpot.value, apart.metrics.tpot.value * (1 + 1e-3));
  double busy = 0;
  for (const KernelRow& row : together.kernels) {
    EXPECT_GE(row.work.exposed().value, 0);
    if (row.phase != Phase::mixed) {
      EXPECT_EQ(row.work.hidden.value, 0);
    }
    busy += row.work.exposed().value;
  }
  EXPECT_NEAR(busy, (together.metrics.utilization * together.metrics.makespan).value, 0.02 * busy);
}

}  // namespace
}  // namespace engine
