// Devices of a kind differ in what they draw for the same work, and a job waits for the one that its power limit slows down most.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/training/run/long_run.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario job_of(std::int64_t replicas, double spread) {
  Scenario scenario = toys::shipped("models", "llama-3.1-8b");
  scenario.task = Task::train;
  scenario.device = toys::shipped("devices", "h100-sxm").device;
  scenario.device.power_spread = spread;
  scenario.device.memory_capacity = Bytes{1e14};
  scenario.host = toys::no_host();
  scenario.calibration.tier = TierChoice::transfer;
  scenario.cluster.devices_per_node = 8;
  scenario.parallel.dp = replicas;
  scenario.train = {.sequence = 4096, .micro_batch = 1, .global_batch = replicas};
  return scenario;
}

Metrics metrics_of(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario, toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}
Seconds time_of(const Scenario& scenario) { return metrics_of(scenario).iteration_time; }
Seconds forward_of(const Scenario& scenario) { return metrics_of(scenario).forward_time; }

TEST(PowerSpread, OneDeviceWaitsForNobody) {
  EXPECT_EQ(time_of(job_of(1, 0.2)), time_of(job_of(1, 0)));
}

TEST(PowerSpread, AJobIsAsFastAsIfAllDevicesDrewWhatTheHungriestDoes) {
  Scenario alike = job_of(64, 0);
  const double most = mean_slowest_factor(0.05, 64);
  alike.device.busy_power = alike.device.busy_power * most;
  alike.device.tensor_power = alike.device.tensor_power * most;
  EXPECT_NEAR(time_of(job_of(64, 0.05)) / time_of(alike), 1, 1e-12);
  EXPECT_GT(time_of(job_of(64, 0.05)), time_of(job_of(64, 0)) * 1.02);
}

TEST(PowerSpread, OfMoreDevicesTheHungriestDrawsMore) {
  double before = 1;
  for (const std::int64_t replicas : {2, 16, 128, 1024}) {
    const double longer = forward_of(job_of(replicas, 0.05)) / forward_of(job_of(replicas, 0));
    EXPECT_GT(longer, before) << replicas;
    before = longer;
  }
}

TEST(PowerSpread, DoesNothingBelowTheLimit) {
  Scenario scenario = job_of(64, 0.05);
  scenario.device.power_limit = Watts{5000};
  Scenario alike = scenario;
  alike.device.power_spread = 0;
  EXPECT_EQ(time_of(scenario), time_of(alike));
}

}  // namespace
}  // namespace engine
