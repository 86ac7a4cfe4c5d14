#include "engine/evaluate.h"

#include <gtest/gtest.h>

#include "engine/explain.h"
#include "tests/support/serving_toys.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Seconds sum_of_rows(const Outcome& outcome) {
  Seconds sum;
  for (const KernelRow& row : outcome.kernels) sum += row.work.time;
  return sum;
}

TEST(Evaluate, TheBreakdownAddsUpToTheStep) {
  for (const ModelSpec& model : {toys::model(), toys::mixture(), toys::latent()}) {
    for (const StepPhase phase : {StepPhase::prefill, StepPhase::decode}) {
      Scenario scenario = toys::scenario();
      scenario.model = model;
      scenario.parallel.tp = 4;
      scenario.step.phase = phase;
      scenario.host = HostSettings{};
      const Outcome outcome = evaluate(scenario);
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      EXPECT_NEAR(sum_of_rows(outcome) / outcome.metrics.step_time, 1, 1e-12);
      const Metrics& metrics = outcome.metrics;
      const Seconds parts = metrics.compute_time + metrics.attention_time +
                            metrics.communication_time + metrics.host_time + metrics.gap_time;
      EXPECT_NEAR(parts / metrics.step_time, 1, 1e-12);
    }
  }
}

TEST(Evaluate, ARequestIsItsPromptAndItsTokens) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::request;
  scenario.request = {.batch = 2, .prompt = 300, .cached = 100, .output = 5};
  const Outcome request = evaluate(scenario);
  ASSERT_EQ(request.status, Status::ok) << request.reason;

  Scenario step = toys::scenario();
  step.step = {.phase = StepPhase::prefill, .batch = 2, .context = 1, .prompt = 300, .cached = 100};
  EXPECT_DOUBLE_EQ(request.metrics.ttft.value, evaluate(step).metrics.step_time.value);
  Seconds decode;
  for (std::int64_t context = 401; context <= 404; ++context) {
    step.step = {.phase = StepPhase::decode, .batch = 2, .context = context};
    decode += evaluate(step).metrics.step_time;
  }
  EXPECT_NEAR(request.metrics.tpot * 4 / decode, 1, 1e-12);
  EXPECT_NEAR((request.metrics.ttft + decode) / request.metrics.e2e, 1, 1e-12);
  EXPECT_NEAR(sum_of_rows(request) / request.metrics.e2e, 1, 1e-12);
}

TEST(Evaluate, ALongPromptIsReadInChunks) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::request;
  scenario.request = {.batch = 1, .prompt = 10'000, .cached = 0, .output = 1};
  scenario.serving.max_num_batched_tokens = 4096;
  const Outcome chunked = evaluate(scenario);
  Seconds expected;
  std::int64_t done = 0;
  for (const std::int64_t chunk : {4096, 4096, 1808}) {
    Scenario step = toys::scenario();
    step.step = {
        .phase = StepPhase::prefill, .batch = 1, .context = 1, .prompt = chunk, .cached = done};
    expected += evaluate(step).metrics.step_time;
    done += chunk;
  }
  // Only the last chunk samples a token; the steps above each did, which is two logits too many.
  EXPECT_LT(chunked.metrics.ttft, expected);
  EXPECT_NEAR(chunked.metrics.ttft / expected, 1, 0.05);
}

TEST(Evaluate, AModelThatDoesNotFitSaysByHowMuch) {
  Scenario scenario = toys::scenario();
  scenario.device.memory_capacity = Bytes{2e9};
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(
      outcome.reason,
      "the model does not fit: weights 3.38 GB, activations 0.00 GB and reserve 0.15 GB exceed "
      "the budget of 1.80 GB by 1.73 GB");
  EXPECT_TRUE(outcome.kernels.empty());
  // Half of the weights would.
  scenario.device.memory_capacity = Bytes{3.5e9};
  EXPECT_TRUE(evaluate(scenario).reason.ends_with("; quant.weights: fp8 would fit"));
  scenario.quant.weights = Dtype::fp8;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
}

TEST(Evaluate, AdaptersThatDoNotFitNameTheSlots) {
  Scenario scenario = toys::served(policy_named("vllm_v1"));
  scenario.serving.lora.rank = 64;
  scenario.load.adapters = 100'000;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.reason_class, ReasonClass::memory);
  EXPECT_TRUE(outcome.reason.ends_with("; serving.lora.slots keeps fewer adapters there"))
      << outcome.reason;
}

TEST(Evaluate, ACacheThatDoesNotFitSaysWhatIsLeft) {
  Scenario scenario = toys::scenario();
  scenario.step.batch = 1000;
  scenario.step.context = 8192;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(
      outcome.reason,
      "the KV cache does not fit: 1000 x 8192 tokens need 335.54 GB, 86.33 GB are left beside "
      "weights of 3.38 GB");
  EXPECT_EQ(outcome.metrics.max_batch, 257);
}

// The largest batch is the same whatever batch was asked for, fits, and one more does not.
TEST(Evaluate, TheLargestBatchIsTheOneThatFits) {
  for (const MemoryShare share :
       {MemoryShare::whole, MemoryShare::rest, MemoryShare::model_and_kv}) {
    for (const StepPhase phase : {StepPhase::decode, StepPhase::prefill}) {
      for (const std::int64_t stages : {1, 2}) {
        Scenario scenario = toys::scenario();
        scenario.parallel.pp = stages;
        scenario.cluster.nodes = 4;
        scenario.serving.memory_share = share;
        scenario.step.phase = phase;
        scenario.step.context = scenario.step.prompt = 4096;
        scenario.step.batch = 1;
        const double most = evaluate(scenario).metrics.max_batch;
        ASSERT_GT(most, 1);
        scenario.step.batch = std::int64_t(most);
        const Outcome fits = evaluate(scenario);
        EXPECT_EQ(fits.status, Status::ok) << fits.reason;
        EXPECT_EQ(fits.metrics.max_batch, most);
        scenario.step.batch += 1;
        EXPECT_EQ(evaluate(scenario).reason_class, ReasonClass::memory) << most;
      }
    }
  }
}

// Prompts of a request are read in steps of a limited size, whose activations a larger batch does not add to.
TEST(Evaluate, TheLargestBatchOfRequestsIsTheOneThatFits) {
  for (const MemoryShare share :
       {MemoryShare::whole, MemoryShare::rest, MemoryShare::model_and_kv}) {
    for (const std::int64_t budget : {256, 4096, 16384}) {
      Scenario scenario = toys::scenario();
      scenario.task = Task::request;
      scenario.serving.memory_share = share;
      scenario.serving.max_num_batched_tokens = budget;
      scenario.request = {.batch = 1, .prompt = 3000, .output = 100};
      const double most = evaluate(scenario).metrics.max_batch;
      ASSERT_GT(most, 1);
      for (const double asked : {2.0, most / 2, most, most + 1}) {
        scenario.request.batch = std::int64_t(asked);
        const Outcome outcome = evaluate(scenario);
        EXPECT_EQ(outcome.status == Status::ok, asked <= most) << outcome.reason;
        EXPECT_EQ(outcome.metrics.max_batch, most) << asked;
      }
    }
  }
}

// Where each stage of a pipeline has a batch of its own, the KV of all of them is in memory.
TEST(Evaluate, APipelineKeepsTheBatchesOfAllItsStages) {
  Scenario scenario = toys::scenario();
  scenario.cluster.nodes = 4;
  const auto in_flight = [&](std::int64_t stages) {
    scenario.parallel.pp = stages;
    scenario.step.batch = 1;
    scenario.step.batch = std::int64_t(evaluate(scenario).metrics.max_batch);
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    // Every sequence in flight gets a token in the time of a step through all stages.
    return outcome.metrics.output.value * outcome.metrics.step_time.value;
  };
  const double one = in_flight(1), two = in_flight(2);
  EXPECT_GT(two, one);        // stages have a part of the weights and of each sequence's KV
  EXPECT_LT(two, 2.2 * one);  // and no more memory than two devices
}

TEST(Evaluate, TheLongestContextIsBetweenTheMeanAndAllOfIt) {
  Scenario scenario = toys::scenario();  // 8 sequences of 1024 tokens
  scenario.step.longest_context = 1000;
  EXPECT_EQ(evaluate(scenario).reason,
            "step.longest_context (1000) is less than step.context, the mean (1024)");
  scenario.step.longest_context = 8186;
  EXPECT_EQ(evaluate(scenario).reason,
            "step.longest_context (8186) is more than 8 sequences of 1024 tokens on average allow "
            "(8185)");
  scenario.step.longest_context = 8185;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
}

TEST(Evaluate, AFormatTheDeviceLacksIsInfeasible) {
  Scenario scenario = toys::scenario();
  scenario.quant.weights = scenario.quant.activations = Dtype::fp4;
  EXPECT_EQ(evaluate(scenario).reason,
            "the device has no fp4 matrix arithmetic (device.peak.fp4 is 0); quant.activations: "
            "bf16 runs these weights");
  scenario.quant.activations = Dtype::bf16;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
}

// Of the generations before bf16, whose every point would otherwise say no more than what they lack.
TEST(Evaluate, ADeviceOfTheOtherSixteenBitsSaysSo) {
  Scenario scenario = toys::scenario();
  scenario.device.peak.bf16 = FlopsPerSecond{0};
  EXPECT_EQ(evaluate(scenario).reason,
            "the device has no bf16 matrix arithmetic (device.peak.bf16 is 0); quant: {weights: "
            "fp16, activations: fp16} runs");
  scenario.quant.weights = Dtype::int4;
  EXPECT_EQ(evaluate(scenario).reason,
            "the device has no bf16 matrix arithmetic (device.peak.bf16 is 0); quant.activations: "
            "fp16 runs these weights");
  scenario.quant.activations = Dtype::fp16;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
  scenario.quant.weights = Dtype::fp16;
  EXPECT_EQ(evaluate(scenario).status, Status::ok);
}

TEST(Evaluate, MoreDevicesThanTheClusterHasAreInfeasible) {
  Scenario scenario = toys::scenario();
  scenario.parallel.tp = 8;
  scenario.parallel.dp = 3;
  scenario.cluster.nodes = 2;
  EXPECT_EQ(evaluate(scenario).reason, "needs 24 devices; the cluster has 16");
}

TEST(Evaluate, ReplicasMultiplyThroughputAndPriceStays) {
  Scenario scenario = toys::scenario();
  const Outcome one = evaluate(scenario);
  scenario.parallel.dp = 4;
  const Outcome four = evaluate(scenario);
  EXPECT_DOUBLE_EQ(four.metrics.output.value, 4 * one.metrics.output.value);
  EXPECT_DOUBLE_EQ(four.metrics.price_usd_per_mtok, one.metrics.price_usd_per_mtok);
  // $3.60 an hour is a tenth of a cent a second.
  EXPECT_NEAR(one.metrics.price_usd_per_mtok, 1e-3 / one.metrics.total.value * 1e6, 1e-12);
}

TEST(Evaluate, ReusedMemoryGivesTheSameOutcome) {
  Scenario scenario = toys::scenario();
  const Outcome fresh = evaluate(scenario);
  Outcome reused;
  Scenario other = scenario;
  other.task = Task::request;
  evaluate_into(other, reused);
  other.device.memory_capacity = Bytes{1e9};
  evaluate_into(other, reused);
  evaluate_into(scenario, reused);
  EXPECT_EQ(reused.kernels, fresh.kernels);
  EXPECT_EQ(reused.metrics.step_time, fresh.metrics.step_time);
  EXPECT_EQ(reused.reason, "");
}

TEST(Explain, NamesThePointAndItsLargestKernelFirst) {
  const Scenario scenario = toys::scenario();
  const std::string text = explain(scenario, evaluate(scenario));
  EXPECT_NE(text.find("toy-model on 1 x toy, weights bf16"), std::string::npos) << text;
  EXPECT_NE(text.find("one decode step: 8 sequences of 1024 tokens"), std::string::npos) << text;
  EXPECT_LT(text.find("gate_up"), text.find("final_norm")) << text;
}

TEST(Explain, SaysFiguresAsPeopleDo) {
  const Scenario scenario = toys::scenario();
  Outcome outcome = evaluate(scenario);
  const auto shows = [&](std::string_view words) {
    const std::string text = explain(scenario, outcome);
    EXPECT_NE(text.find(words), std::string::npos) << words << " in\n" << text;
  };
  struct Said {
    double seconds;
    std::string_view text;
  };
  for (const Said& said :
       {Said{0.00177, " 1.77 ms\n"}, Said{999, " 999 s\n"}, Said{1200, " 20 min\n"},
        Said{36'000, " 10 h\n"}, Said{31'100, " 8.64 h\n"}, Said{1e6, " 11.6 d\n"}}) {
    outcome.metrics.step_time = Seconds{said.seconds};
    shows(said.text);
  }
  outcome.metrics.output = TokensPerSecond{0.136};
  shows(" 0.136 tok/s\n");
  outcome.metrics.output = TokensPerSecond{2500};
  shows(" 2.5 ktok/s\n");
}

}  // namespace
}  // namespace engine
