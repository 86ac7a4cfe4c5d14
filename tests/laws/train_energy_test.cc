// A job draws what its devices draw: never less than at rest, never more than their limits, and nothing twice for what goes on at the
// same time.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/strategies.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

using toys::step_of;

Outcome outcome_of(const Scenario& scenario) {
  return evaluate(scenario, toys::transfer_resources());
}

Watts drawn_by_one(const Metrics& metrics) {
  return metrics.iteration_energy / metrics.iteration_time / metrics.devices;
}

const KernelRow& row_of(const Outcome& outcome, OpName name) {
  for (const KernelRow& row : outcome.kernels) {
    if (row.op == name) return row;
  }
  ADD_FAILURE() << "no such row";
  return outcome.kernels.front();
}

TEST(TrainEnergy, LiesBetweenRestAndTheLimit) {
  toys::Strategies strategies;
  int tried = 0;
  for (int i = 0; i < 500; ++i) {
    const Scenario scenario = strategies.next();
    const Outcome outcome = outcome_of(scenario);
    if (outcome.status != Status::ok || !(outcome.metrics.iteration_energy.value > 0)) continue;
    ++tried;
    const Watts drawn = drawn_by_one(outcome.metrics);
    EXPECT_GE(drawn.value, scenario.device.idle_power.value * (1 - 1e-9)) << i;
    EXPECT_LE(drawn.value, scenario.device.power_limit.value * (1 + 1e-9)) << i;
  }
  EXPECT_GT(tried, 200);
}

Scenario offloaded() {
  Scenario scenario = step_of("llama-3.1-8b", "h200-sxm");
  scenario.train.offload_activations = true;
  scenario.train.global_batch = 64;
  return scenario;
}

// Engines of their own copy to the host and back: beside work, only memory draws more for it.
TEST(TrainEnergy, OfCopiesBesideWorkIsMemorys) {
  Scenario scenario = offloaded();
  scenario.device.host_link.bandwidth = BytesPerSecond{1e12};
  const Outcome outcome = outcome_of(scenario);
  ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
  for (const OpName name : {OpName::activation_offload, OpName::activation_upload}) {
    const Work& copy = row_of(outcome, name).work;
    ASSERT_GT(copy.hidden / copy.time, 0.99);
    const Joules memory =
        scenario.device.memory_power * (copy.bytes / scenario.device.memory_bandwidth);
    EXPECT_NEAR(copy.energy.value, (memory + scenario.device.idle_power * copy.exposed()).value,
                1e-6 * copy.energy.value);
  }
}

// Set to another clock, a device draws by the square of it above what it draws at rest, in training as in steps that are served.
TEST(TrainEnergy, FollowsTheClockAsServedStepsDo) {
  Scenario scenario = step_of("llama-3.1-8b", "h200-sxm");
  scenario.device.power_limit = Watts{1e5};
  Scenario slower = scenario;
  slower.device.clock = scenario.device.clock * 0.7;
  const Device& device = scenario.device;
  const auto drawn = [&](const Scenario& of) {
    const Outcome outcome = outcome_of(of);
    const Work& update = row_of(outcome, OpName::optimizer).work;
    const double lower = of.device.on_chip_scale() * of.device.on_chip_scale();
    const Joules memory = device.memory_power * (update.bytes / device.memory_bandwidth) * lower;
    return (update.energy - memory) / update.time;
  };
  EXPECT_NEAR(drawn(scenario).value, device.busy_power.value, 1e-6 * device.busy_power.value);
  EXPECT_NEAR((drawn(slower) - device.idle_power) / (drawn(scenario) - device.idle_power), 0.49,
              1e-6);
  EXPECT_LT(drawn_by_one(outcome_of(slower).metrics).value,
            0.8 * drawn_by_one(outcome_of(scenario).metrics).value);
}

}  // namespace
}  // namespace engine
