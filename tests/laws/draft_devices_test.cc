// A draft works on the devices that it is on, whichever those are: no figure counts it on others.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/draft.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::sound;
using toys::speculative;
using toys::with_draft;

constexpr double kRest = 100;

Scenario on_four(std::int64_t of_draft) {
  Scenario scenario = speculative(SpeculationMethod::draft_model, 3, "0.5");
  scenario.parallel.tp = 4;
  scenario = with_draft(scenario);
  scenario.draft.deployment.parallel.tp = of_draft;
  return scenario;
}

// Devices of another sort: they stand in no node of the main ones.
Scenario elsewhere(Scenario scenario) {
  Role& draft = scenario.draft;
  draft.deployment.device.clock = Hertz{1.9e9};
  draft.deployment.parallel.pp = 1;
  return scenario;
}

Scenario served(Scenario scenario) {
  scenario.task = Task::serve;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 3;
  scenario.load.requests = 30;
  scenario.load.measure = MeasureKind::whole;
  scenario.load.lengths = {.prompt = 500, .output = 41};
  return scenario;
}

// Of all kernels: those of the main model on `main` devices each, and those of its draft on `draft`.
double flops_done(const Outcome& outcome, double main, double draft) {
  double flops = 0;
  for (const KernelRow& row : outcome.kernels) {
    if (row.bound == Bound::network) continue;
    flops += row.work.flops.value * (row.role == DeploymentRole::draft ? draft : main);
  }
  return flops;
}

constexpr double kPeak = 1e15;

TEST(DraftDevices, AStepAndARequestDoNoWorkOnDevicesThatADraftLeavesOut) {
  for (const Task task : {Task::step, Task::request}) {
    for (const std::int64_t devices : {1, 2, 4}) {
      Scenario scenario = on_four(devices);
      scenario.task = task;
      scenario.request = {.prompt = 500, .output = 41};
      const Outcome outcome = sound(scenario);
      const Metrics& metrics = outcome.metrics;
      const double seconds = (task == Task::step ? metrics.step_time : metrics.e2e).value;
      const double done = flops_done(outcome, 4, double(devices));
      EXPECT_NEAR(metrics.model_flops_utilization * 4 * kPeak * seconds / done, 1, 1e-9) << devices;
    }
  }
}

TEST(DraftDevices, AServedLoadDoesNoWorkOnDevicesThatADraftLeavesOut) {
  for (const std::int64_t devices : {1, 2, 4}) {
    const Outcome outcome = sound(served(on_four(devices)));
    const Metrics& metrics = outcome.metrics;
    const double done = flops_done(outcome, 4, double(devices));
    const double could = 4 * kPeak * metrics.makespan.value;
    EXPECT_NEAR(metrics.model_flops_utilization * could / done, 1, 1e-6) << devices;
  }
}

// A draft on its own devices is among those that could have worked, in a served load as in a request.
TEST(DraftDevices, ThoseOfADraftElsewhereCouldHaveWorked) {
  Scenario scenario = elsewhere(on_four(2));
  const double peak = kPeak * (4 + 2 * 1.9);
  const Outcome load = sound(served(scenario));
  EXPECT_NEAR(load.metrics.model_flops_utilization * peak * load.metrics.makespan.value /
                  flops_done(load, 4, 2),
              1, 1e-6);
  scenario.task = Task::request;
  scenario.request = {.prompt = 500, .output = 41};
  const Outcome single = sound(scenario);
  EXPECT_NEAR(single.metrics.model_flops_utilization * peak * single.metrics.e2e.value /
                  flops_done(single, 4, 2),
              1, 1e-9);
}

// A slow draft elsewhere leaves few batches in flight in a pipeline: what is done follows from the tokens that come out.
TEST(DraftDevices, APipelineThatWaitsForADraftDoesWhatItsTokensTake) {
  for (const double slower : {1.0, 10.0, 100.0}) {
    Scenario scenario = on_four(1);
    scenario.parallel = {.tp = 1, .pp = 4};
    scenario.model.layers = 12;
    scenario = elsewhere(scenario);
    Device& device = scenario.draft.deployment.device;
    device.memory_bandwidth = device.memory_bandwidth / slower;
    const Outcome outcome = sound(scenario);
    const Metrics& metrics = outcome.metrics;
    const double batches =
        metrics.output.value / (double(scenario.step.batch) * metrics.accepted_tokens_per_step);
    const double done = flops_done(outcome, 1, 1) * batches;
    EXPECT_NEAR(metrics.model_flops_utilization * kPeak * (4 + 1.9) / done, 1, 1e-9) << slower;
  }
}

Scenario powered(Scenario scenario) {
  for (Device* device : {&scenario.device, &scenario.draft.deployment.device}) {
    device->idle_power = Watts{kRest};
    device->busy_power = Watts{400};
    device->tensor_power = Watts{300};
    device->memory_power = Watts{150};
    device->power_limit = Watts{900};
  }
  return scenario;
}

// While a draft works on some devices of its replica the others rest.
TEST(DraftDevices, OthersRestWhileADraftWorks) {
  double before = 0;
  for (const std::int64_t devices : {4, 2, 1}) {
    const Outcome outcome = sound(powered(served(on_four(devices))));
    const Metrics& metrics = outcome.metrics;
    double energy = 0, proposing = 0, busy = 0;
    for (const KernelRow& row : outcome.kernels) {
      const bool draft = row.role == DeploymentRole::draft;
      energy += row.work.energy.value * (draft ? double(devices) : 4);
      busy += row.work.exposed().value;
      if (draft) proposing += row.work.exposed().value;
    }
    energy += kRest * (double(4 - devices) * proposing + 4 * (metrics.makespan.value - busy));
    EXPECT_NEAR(metrics.energy.value / energy, 1, 1e-6) << devices;
    const double watts = metrics.energy.value / (4 * metrics.makespan.value);
    if (before > 0) {
      EXPECT_LT(watts, before) << devices;
    }
    before = watts;
  }
}

// A draft that reads prompts beside those who read them does so on their devices.
TEST(DraftDevices, PromptsAreReadOnTheReadersDevices) {
  Scenario scenario = powered(served(on_four(4)));
  scenario.load.lengths = {.prompt = 4000, .output = 2};
  scenario.prefill.present = true;
  const Role drafted = scenario.draft;
  fill_roles(scenario);
  scenario.draft = drafted;
  scenario.prefill.deployment.parallel.tp = 1;
  const Outcome outcome = sound(scenario);
  const Metrics& metrics = outcome.metrics;
  double energy = 0, busy = 0;
  for (const KernelRow& row : outcome.kernels) {
    const bool reads = row.role == DeploymentRole::prefill ||
                       (row.role == DeploymentRole::draft && row.phase == Phase::prefill);
    energy += row.work.energy.value * (reads ? 1 : 4);
    busy += row.work.exposed().value * (reads ? 1 : 4);
  }
  energy += kRest * (5 * metrics.makespan.value - busy);
  EXPECT_NEAR(metrics.energy.value / energy, 1, 1e-6);
}

}  // namespace
}  // namespace engine
