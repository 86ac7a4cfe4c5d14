// How much of the devices is used where two models are on them.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// Twins that share a device.
Scenario twins(SharingMode mode) {
  Scenario scenario = toys::scenario();
  scenario.step = {.phase = StepPhase::decode, .batch = 8, .context = 1000};
  scenario.neighbour.present = true;
  fill_roles(scenario);
  scenario.sharing = {.mode = mode, .switch_time = Seconds{0}};
  return scenario;
}

Scenario served_twins(SharingMode mode) {
  Scenario scenario = twins(mode);
  scenario.task = Task::serve;
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.requests = 400;
  scenario.load.lengths = {.prompt = 200, .output = 40};
  fill_roles(scenario);
  return scenario;
}

Metrics figures(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

// Utilisations are of all of the devices, whatever part of them a model has: the same step does the same work.
TEST(Neighbours, UseIsOfAllOfTheDevices) {
  Scenario scenario = twins(SharingMode::time_slices);
  scenario.sharing.memory = 0.3;
  const auto done = [&](SharingMode mode, double share) {
    scenario.sharing.mode = mode;
    scenario.sharing.share = share;
    const Metrics metrics = figures(scenario);
    EXPECT_GE(metrics.sharing_time.value, 0) << name_of(mode);
    return metrics.model_flops_utilization * metrics.step_time.value;
  };
  const double turns = done(SharingMode::time_slices, 0.5);
  for (const SharingMode mode : {SharingMode::streams, SharingMode::spatial, SharingMode::mig}) {
    for (const double share : {0.3, 0.5, 0.8}) {
      EXPECT_NEAR(done(mode, share) / turns, 1, 1e-9) << name_of(mode) << " " << share;
    }
  }
  // A prefill deployment has its devices to itself.
  Scenario load = served_twins(SharingMode::spatial);
  load.sharing.share = 0.3;
  const double alone = figures(load).model_flops_utilization;
  load.prefill.present = true;
  fill_roles(load);
  EXPECT_NEAR(figures(load).model_flops_utilization / alone, 0.5, 0.05);
}

// A share of the throughput is a rate, at which a model is alone on the devices as it is on its part of them: stating that rate changes
// nothing.
TEST(ServedNeighbours, AShareOfTheThroughputIsARate) {
  for (const SharingMode mode :
       {SharingMode::time_slices, SharingMode::spatial, SharingMode::mig}) {
    Scenario scenario = served_twins(mode);
    scenario.sharing.share = 0.4;
    scenario.load.throughput_fraction = 0.5;
    const Outcome share = evaluate(scenario);
    ASSERT_EQ(share.status, Status::ok) << share.reason;
    scenario.load.throughput_fraction = 0;
    scenario.load.rate = RequestsPerSecond{share.load_rate};
    const Metrics rate = figures(scenario);
    EXPECT_EQ(rate.tpot, share.metrics.tpot) << name_of(mode);
    EXPECT_EQ(rate.sharing_slowdown, share.metrics.sharing_slowdown) << name_of(mode);
    EXPECT_EQ(rate.neighbour_tpot, share.metrics.neighbour_tpot) << name_of(mode);
  }
}

}  // namespace
}  // namespace engine
