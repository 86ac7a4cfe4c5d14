// What the devices of a served load draw, and how busy they are: between rest and the limit, whatever the layout.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/evaluate.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

constexpr double kIdle = 100, kLimit = 900;

Scenario powered() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.device.peak.bf16 = FlopsPerSecond{5e12};
  scenario.device.idle_power = Watts{kIdle};
  scenario.device.busy_power = Watts{150};
  scenario.device.tensor_power = Watts{300};
  scenario.device.memory_power = Watts{150};
  scenario.device.power_limit = Watts{kLimit};
  scenario.host = toys::no_host();
  scenario.load.rate = RequestsPerSecond{2};
  scenario.load.requests = 300;
  scenario.load.measure = MeasureKind::whole;
  scenario.load.lengths = {.prompt = 100, .output = 60};
  return scenario;
}

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

void expect_possible(const Metrics& metrics) {
  const double watts = metrics.energy.value / (metrics.makespan.value * metrics.devices);
  EXPECT_GE(watts, kIdle * (1 - 1e-9));
  EXPECT_LE(watts, kLimit);
  EXPECT_LE(metrics.model_flops_utilization, 1);
  EXPECT_LE(metrics.memory_bandwidth_utilization, 1);
}

TEST(ServedEnergy, IsThatOfKernelsAndOfRest) {
  const Scenario scenario = powered();
  const Outcome outcome = evaluate(scenario);
  const Metrics& metrics = outcome.metrics;
  double energy = 0;
  for (const KernelRow& row : outcome.kernels) energy += row.work.energy.value;
  const double idle = (1 - metrics.utilization) * metrics.makespan.value;
  EXPECT_NEAR(metrics.energy.value, energy + kIdle * idle, 0.01 * metrics.energy.value);
  EXPECT_GE(metrics.energy.value, kIdle * metrics.makespan.value * (1 - 1e-9));
  Scenario silent = scenario;
  silent.device = toys::gpu();
  EXPECT_TRUE(std::isnan(figures(silent).energy.value));
}

TEST(ServedEnergy, APipelineDoesTheSameWorkOnMoreDevices) {
  for (const double rate : {0.5, 8.0, 1000.0}) {
    double work = 0, flops = 0;
    for (const std::int64_t pp : {1, 2, 4}) {
      Scenario scenario = powered();
      scenario.model.layers = 8;
      scenario.parallel.pp = pp;
      scenario.load.rate = RequestsPerSecond{rate};
      // Reading alone: decodes of a smaller batch a lane would read the weights more often.
      scenario.load.lengths = {.prompt = 500, .output = 1};
      const Metrics metrics = figures(scenario);
      expect_possible(metrics);
      const double seconds = metrics.makespan.value * metrics.devices;
      const double above_rest = metrics.energy.value - kIdle * seconds;
      if (pp == 1) {
        work = above_rest;
        flops = metrics.model_flops_utilization * seconds;
      } else {
        EXPECT_NEAR(above_rest, work, 0.25 * work) << pp << " stages at " << rate << " req/s";
        EXPECT_NEAR(metrics.model_flops_utilization * seconds, flops, 0.05 * flops);
      }
    }
  }
}

TEST(ServedEnergy, EveryLayoutAndClockDrawsBetweenRestAndLimit) {
  for (const std::int64_t tp : {1, 2}) {
    for (const bool reads_apart : {false, true}) {
      for (const double lowest : {1.0, 0.3, 0.1}) {
        Scenario scenario = powered();
        scenario.parallel.tp = tp;
        scenario.slo.tpot.p99 = Seconds{10};
        scenario.serving.clock.mode = ClockMode::slo;
        scenario.serving.clock.lowest = lowest;
        if (reads_apart) {
          scenario.prefill.present = true;
          fill_roles(scenario);
        }
        expect_possible(figures(scenario));
      }
    }
  }
}

// Attention of prompts and of decodes at once is one kernel, which draws no more than the limit, and what the board draws at rest once.
TEST(ServedEnergy, AttentionThatOverlapsDrawsNoMoreThanTheLimit) {
  for (const double limit : {200.0, 300.0, 900.0}) {
    Scenario scenario = powered();
    scenario.device.power_limit = Watts{limit};
    scenario.serving.max_num_batched_tokens = 256;
    scenario.load.arrivals = ArrivalKind::closed;
    scenario.load.clients = 16;
    scenario.load.lengths = {.prompt = 3000, .output = 100};
    double apart = 0;
    for (const MixedAttention kind : {MixedAttention::separate, MixedAttention::overlapped}) {
      scenario.serving.mixed_attention = kind;
      const Outcome outcome = evaluate(scenario);
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      double drawn = 0, exposed = 0, hidden = 0;
      for (const KernelRow& row : outcome.kernels) {
        if (row.phase != Phase::mixed || !is_attention(row.family)) continue;
        drawn += row.work.energy.value;
        exposed += row.work.exposed().value;
        hidden += row.work.hidden.value;
      }
      EXPECT_LE(drawn, limit * exposed * (1 + 1e-9));
      if (kind == MixedAttention::separate) {
        apart = drawn / (exposed + hidden);
        continue;
      }
      EXPECT_GT(hidden, 0);
      const double once = apart * (exposed + hidden) - kIdle * hidden;
      EXPECT_NEAR(drawn, std::min(once, limit * exposed), 0.02 * drawn) << limit;
    }
  }
}

TEST(ServedEnergy, ReplicasThatAreOffDrawNothing) {
  double one = 0;
  for (const std::int64_t replicas : {1, 2, 8}) {
    Scenario scenario = powered();
    scenario.serving.replicas = replicas;
    scenario.serving.scaling = {
        .policy = ScalingPolicy::reactive, .min_replicas = 1, .target = 1000};
    const double energy = figures(scenario).energy.value;
    if (replicas == 1) one = energy;
    EXPECT_NEAR(energy, one, 1e-9 * one) << replicas;
  }
}

TEST(ServedEnergy, DevicesThatNeverWorkDrawWhatTheyDrawAtRest) {
  Scenario scenario = powered();
  scenario.prefill.present = true;
  fill_roles(scenario);
  scenario.transfer.first_token = FirstToken::prefill;
  scenario.load.lengths.output = 1;
  expect_possible(figures(scenario));
}

TEST(ServedEnergy, OfTwoModelsOnADeviceIsNotKnown) {
  Scenario scenario = powered();
  scenario.neighbour.present = true;
  fill_roles(scenario);
  EXPECT_TRUE(std::isnan(figures(scenario).energy.value));
}

TEST(ServedLoad, WhereNoRequestFitsThereIsAReasonAndNoFigure) {
  Scenario scenario = powered();
  scenario.serving.kv_blocks = 3;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason_class, ReasonClass::memory);
  EXPECT_TRUE(outcome.reason.starts_with("none of the 300 requests fits: they have 160 tokens"))
      << outcome.reason;
  EXPECT_TRUE(outcome.reason.ends_with(": load.lengths.prompt_max cuts prompts")) << outcome.reason;
  // Those of a trace are as long as it says.
  Scenario replayed = toys::served(policy_named("vllm_v1"));
  replayed.serving.kv_blocks = 3;
  EXPECT_EQ(
      evaluate(replayed, toys::trace({{0, 100, 4}, {1, 100, 4}})).reason,
      "none of the 2 requests fits: they have 104 tokens on average, the 3 KV blocks hold 12, "
      "the model reads 131072");
  // Readers may have less room than those that write.
  replayed.serving.kv_blocks = 100;
  replayed.prefill.present = true;
  fill_roles(replayed);
  replayed.prefill.deployment.serving.kv_blocks = 2;
  EXPECT_EQ(
      evaluate(replayed, toys::trace({{0, 100, 4}, {1, 100, 4}})).reason,
      "none of the 2 requests fits: they have 104 tokens on average, the 100 KV blocks hold 400, "
      "the 2 of prefill hold 8, the model reads 131072");
}

}  // namespace
}  // namespace engine
