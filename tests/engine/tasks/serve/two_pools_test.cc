// A served load whose prompts are read by one deployment and whose answers are written by another, from the
// front door.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/evaluate.h"
#include "engine/leaves/key.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario served() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.load.requests = 400;
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.lengths = {.prompt = 200, .output = 20};
  scenario.device.scale_out = {.name = "wire",
                               .topology = Topology::fabric,
                               .bandwidth = BytesPerSecond{50e9},
                               .latency = Seconds{5e-6},
                               .devices = 1024};
  scenario.device.rent = DollarsPerSecond{0.001};
  return scenario;
}

Scenario disaggregated(Scenario scenario) {
  scenario.prefill.present = true;
  fill_roles(scenario);
  return scenario;
}

TEST(TwoPools, ServeWhatOneWouldAndSayHowTheyShareIt) {
  const Outcome one = evaluate(served());
  const Outcome two = evaluate(disaggregated(served()));
  ASSERT_EQ(one.status, Status::ok) << one.reason;
  ASSERT_EQ(two.status, Status::ok) << two.reason;
  const Metrics& metrics = two.metrics;
  EXPECT_EQ(metrics.devices, 2 * one.metrics.devices);
  EXPECT_EQ(metrics.prefill_devices, one.metrics.devices);
  EXPECT_EQ(metrics.rent.value, 2 * one.metrics.rent.value);
  EXPECT_EQ(metrics.requests_finished, one.metrics.requests_finished);
  EXPECT_NEAR(metrics.throughput / one.metrics.throughput, 1, 0.02);
  EXPECT_GT(metrics.transfer.value, 0);
  EXPECT_LT(metrics.transfer_share, 1);
  EXPECT_GT(metrics.prefill_utilization, 0);
  EXPECT_LE(metrics.prefill_utilization, 1);
  EXPECT_GT(metrics.prefill_kv_peak, 0);
  EXPECT_NEAR(metrics.goodput_per_device.value * metrics.devices, metrics.goodput.value, 1e-9);
  EXPECT_TRUE(std::isnan(one.metrics.transfer.value));
  EXPECT_TRUE(std::isnan(one.metrics.prefill_devices));
  // Each kernel says who ran it: prompts the one, answers the other.
  for (const KernelRow& row : two.kernels) {
    EXPECT_EQ(row.role == DeploymentRole::prefill, row.phase == Phase::prefill)
        << name_of(row.op) << " " << name_of(row.phase);
  }
}

// To ask whether a prompt is short enough to stay sends nobody anywhere: round robin used to count the question, so that
// of two replicas one got all requests.
TEST(TwoPools, ALimitThatNoPromptIsWithinChangesNothing) {
  for (std::size_t router = 0; router < kRouters.size(); ++router) {
    for (const TransferInitiative initiative :
         {TransferInitiative::pull, TransferInitiative::push}) {
      Scenario scenario = served();
      scenario.serving.replicas = 2;
      scenario.serving.router = RouterName(router);
      scenario.transfer.initiative = initiative;
      const Outcome plain = evaluate(disaggregated(scenario));
      scenario.transfer.local_prompt = 1;
      const Outcome limited = evaluate(disaggregated(scenario));
      ASSERT_EQ(plain.status, Status::ok) << plain.reason;
      EXPECT_EQ(plain.metrics.tpot, limited.metrics.tpot) << kRouters[router].name;
      EXPECT_EQ(plain.metrics.ttft, limited.metrics.ttft) << kRouters[router].name;
      EXPECT_EQ(plain.metrics.steps, limited.metrics.steps) << kRouters[router].name;
      EXPECT_EQ(plain.metrics.kv_peak, limited.metrics.kv_peak) << kRouters[router].name;
    }
  }
}

TEST(TwoPools, LongPromptsNoLongerHoldUpDecodes) {
  Scenario scenario = served();
  scenario.load.lengths = {.prompt = 1500, .output = 100};
  scenario.load.rate = RequestsPerSecond{10};
  EXPECT_LT(evaluate(disaggregated(scenario)).metrics.itl_p99, evaluate(scenario).metrics.itl_p99);
}

// Whoever comes is spread over the batches of a pipeline at once: a pool that reads no prompts never makes a token later
// than one that does.
TEST(TwoPools, APipelineTakesWhoeverComes) {
  for (const std::int64_t stages : {1, 2, 4}) {
    for (const double rate : {1.0, 20.0, 60.0}) {
      Scenario scenario = served();
      scenario.parallel.pp = stages;
      scenario.load.rate = RequestsPerSecond{rate};
      scenario.load.lengths = {.prompt = 200, .output = 100};
      const Outcome one = evaluate(scenario);
      const Outcome two = evaluate(disaggregated(scenario));
      ASSERT_EQ(one.status, Status::ok) << one.reason;
      ASSERT_EQ(two.status, Status::ok) << two.reason;
      EXPECT_LT(two.metrics.tpot.value, 1.02 * one.metrics.tpot.value) << stages << " " << rate;
      EXPECT_LT(two.metrics.tpot_p99.value, 1.02 * one.metrics.tpot_p99.value)
          << stages << " " << rate;
    }
  }
}

TEST(TwoPools, TheReaderDecidesTheFirstTokenAndTheOtherTheRest) {
  const Metrics before = evaluate(disaggregated(served())).metrics;
  Scenario faster = disaggregated(served());
  Device& reader = faster.prefill.deployment.device;
  reader.peak.bf16 = reader.peak.bf16 * 4;
  reader.peak.fp16 = reader.peak.fp16 * 4;
  reader.memory_bandwidth = reader.memory_bandwidth * 4;
  const Metrics after = evaluate(faster).metrics;
  EXPECT_LT(after.ttft, before.ttft);
  EXPECT_NEAR(after.tpot / before.tpot, 1, 0.02);

  Scenario slower = disaggregated(served());
  slower.device.memory_bandwidth = slower.device.memory_bandwidth / 2;
  EXPECT_GT(evaluate(slower).metrics.tpot, before.tpot);
}

TEST(TwoPools, ASlowLinkIsWaitedForOnlyWhereItIsTold) {
  Scenario scenario = disaggregated(served());
  scenario.transfer.link = {.name = "thin",
                            .topology = Topology::fabric,
                            .bandwidth = BytesPerSecond{2e6},
                            .latency = Seconds{1e-3},
                            .devices = 1024};
  const Metrics told = evaluate(scenario).metrics;
  const Metrics fast = evaluate(disaggregated(served())).metrics;
  EXPECT_GT(told.transfer, fast.transfer);
  EXPECT_GT(told.ttft, fast.ttft);
  scenario.transfer.first_token = FirstToken::prefill;
  const Metrics early = evaluate(scenario).metrics;
  EXPECT_LT(early.ttft, told.ttft);
  EXPECT_GT(early.tpot, told.tpot);
  EXPECT_NEAR(early.e2e / told.e2e, 1, 1e-9);
  scenario.transfer.local_prompt = 200;
  const Metrics local = evaluate(scenario).metrics;
  EXPECT_TRUE(std::isnan(local.transfer.value));
  EXPECT_EQ(local.prefill_utilization, 0);
}

TEST(TwoPools, OneTooManyIsARowWithAReason) {
  const auto reason_of = [](auto change) {
    Scenario scenario = disaggregated(served());
    change(scenario);
    const Outcome outcome = evaluate(scenario);
    EXPECT_NE(outcome.status, Status::ok);
    EXPECT_TRUE(outcome.reason.find("prefill") != std::string::npos) << outcome.reason;
    return outcome.reason_class;
  };
  EXPECT_EQ(reason_of([](Scenario& s) { s.prefill.deployment.model.layers += 1; }),
            ReasonClass::unsupported);
  EXPECT_EQ(reason_of([](Scenario& s) { s.prefill.deployment.quant.kv = Dtype::fp8; }),
            ReasonClass::format);
  EXPECT_EQ(reason_of([](Scenario& s) { s.prefill.deployment.device.scale_out = {}; }),
            ReasonClass::links);
  EXPECT_EQ(
      reason_of([](Scenario& s) { s.prefill.deployment.device.memory_capacity = Bytes{1e6}; }),
      ReasonClass::memory);
  EXPECT_EQ(reason_of([](Scenario& s) {
              s.prefill.deployment.cluster.nodes = s.cluster.nodes = 1;
              s.prefill.deployment.cluster.devices_per_node = s.cluster.devices_per_node = 1;
            }),
            ReasonClass::cluster);
}

// Whoever is read again after a failure asks for its adapter once more.
TEST(TwoPools, AdaptersAreAskedForAgainWhereReadersFail) {
  for (const std::int64_t slots : {0, 8}) {
    Scenario scenario = served();
    scenario.load.adapters = 64;
    scenario.serving.lora.slots = slots;
    scenario = disaggregated(scenario);
    scenario.prefill.deployment.serving.failures.mean_time_to_failure = Seconds{5};
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  }
}

// 1,600 tokens hold two sequences of a prompt and the most that it may answer, and one of the longest that the model is made
// for, whoever reads the prompts. Writers used to set aside what an answer comes to, which no engine knows.
TEST(TwoPools, RoomIsSetAsideAsInOnePool) {
  const auto sequences = [](PolicyName policy, std::int64_t most_output) {
    Scenario scenario = served();
    scenario.load.rate = RequestsPerSecond{1000};
    scenario.serving.policy = policy;
    scenario.serving.block_size = 16;
    scenario.serving.kv_blocks = 100;
    scenario.serving.max_output = most_output;
    const Outcome outcome = evaluate(disaggregated(scenario));
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics.batch_mean;
  };
  for (const PolicyName policy : {policy_named("no_evict"), policy_named("static")}) {
    EXPECT_GT(sequences(policy, 0), 2) << name_of(policy);
    EXPECT_LE(sequences(policy, 550), 2) << name_of(policy);
  }
  ASSERT_GT(toys::scenario().model.max_context, 800);
  EXPECT_EQ(sequences(policy_named("orca"), 0), 1);
}

// Its capacity is that of the pool that is full first.
TEST(TwoPools, CapacityGrowsWithThePoolThatLimitsIt) {
  const auto capacity = [](std::int64_t readers, std::int64_t writers) {
    Scenario scenario = served();
    scenario.load.lengths = {.prompt = 400, .output = 8};
    scenario.capacity.slo.ttft.p99 = Seconds{1};
    scenario.serving.replicas = writers;
    scenario.prefill.present = true;
    fill_roles(scenario);
    scenario.prefill.deployment.serving.replicas = readers;
    const Outcome outcome = evaluate(scenario);
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics.capacity.value;
  };
  const double base = capacity(1, 1);
  EXPECT_GT(capacity(2, 1), 1.5 * base);
  EXPECT_LT(capacity(1, 2), 1.2 * base);
}

}  // namespace
}  // namespace engine
