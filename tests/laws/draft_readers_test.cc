// Where other devices read prompts for the main deployment, a draft that has KV of its own is there, too: it reads prompts on
// those devices, lies in their memory, and its KV is carried with theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::sound;
using toys::speculative;
using toys::with_draft;

// One request at a time, read by one deployment and answered by another.
Scenario read_elsewhere(Scenario scenario, Task task = Task::serve) {
  scenario.task = task;
  scenario.cluster.devices_per_node = 2;
  scenario.request = {.prompt = 2000, .output = 40};
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 1;
  scenario.load.requests = 20;
  scenario.load.lengths = {.prompt = 2000, .output = 40};
  scenario.prefill.present = true;
  const Role drafted = scenario.draft;
  fill_roles(scenario);
  if (drafted.present) {
    scenario.draft.deployment = scenario;
    scenario.draft.deployment.model.layers = 2;
  }
  return scenario;
}

Scenario plain() { return toys::scenario(); }
Scenario drafted() { return with_draft(speculative(SpeculationMethod::draft_model, 3, "0.7")); }
Scenario layered() { return speculative(SpeculationMethod::mtp, 3, "0.7"); }

KernelRow carried(const Outcome& outcome) {
  const auto row = std::ranges::find(outcome.kernels, OpName::kv_transfer, &KernelRow::op);
  EXPECT_NE(row, outcome.kernels.end());
  return row == outcome.kernels.end() ? KernelRow{} : *row;
}

// The toy has ten layers, the draft two, and an added layer is one.
TEST(DraftsBesideReaders, HandTheirKvOn) {
  const KernelRow alone = carried(sound(read_elsewhere(plain(), Task::request)));
  const auto more = [&](const Scenario& scenario) {
    const KernelRow row = carried(sound(read_elsewhere(scenario, Task::request)));
    EXPECT_NEAR(row.work.time / alone.work.time, row.work.bytes / alone.work.bytes, 1e-3);
    return row.work.bytes / alone.work.bytes;
  };
  EXPECT_NEAR(more(drafted()), 1.2, 1e-9);
  EXPECT_NEAR(more(layered()), 1.1, 1e-9);
  EXPECT_NEAR(more(speculative(SpeculationMethod::ngram, 3, "0.7")), 1, 1e-9);
}

TEST(DraftsBesideReaders, AreCarriedInServedLoadsAsInSingleRequests) {
  for (const Scenario& scenario : {plain(), drafted(), layered()}) {
    const Metrics served = sound(read_elsewhere(scenario)).metrics;
    const KernelRow row = carried(sound(read_elsewhere(scenario, Task::request)));
    EXPECT_NEAR(served.transfer / row.work.time, 1, 1e-3);
  }
}

TEST(DraftsBesideReaders, MakeTheFirstTokenWaitInServedLoadsAsInSingleRequests) {
  for (const Scenario& scenario : {plain(), drafted(), layered()}) {
    const Metrics served = sound(read_elsewhere(scenario)).metrics;
    const Metrics single = sound(read_elsewhere(scenario, Task::request)).metrics;
    EXPECT_NEAR(served.ttft / single.ttft, 1, 0.01);
  }
}

// Of KV blocks the readers have so many fewer, and of memory as much less as the draft's weights are.
TEST(DraftsBesideReaders, LieInTheirMemory) {
  const double peak = sound(read_elsewhere(plain())).metrics.prefill_kv_peak;
  EXPECT_GT(sound(read_elsewhere(drafted())).metrics.prefill_kv_peak, 1.2 * peak);
  EXPECT_GT(sound(read_elsewhere(layered())).metrics.prefill_kv_peak, 1.1 * peak);

  for (const Task task : {Task::serve, Task::request}) {
    Scenario without = read_elsewhere(plain(), task), with = read_elsewhere(drafted(), task);
    const Metrics alone = evaluate(without).metrics;
    const Bytes needed = alone.weights + alone.activations + alone.reserved;
    const Bytes draft = evaluate(with).metrics.weights - alone.weights;
    const double share = without.serving.memory_utilization;
    for (Scenario* scenario : {&without, &with}) {
      Device& device = scenario->prefill.deployment.device;
      device.memory_capacity = (needed + draft * 0.9) / share;
    }
    EXPECT_EQ(evaluate(without).status, Status::ok) << evaluate(without).reason;
    const Outcome refused = evaluate(with);
    EXPECT_EQ(refused.status, Status::infeasible);
    EXPECT_TRUE(refused.reason.starts_with("prefill: the model does not fit")) << refused.reason;
  }
}

TEST(DraftsBesideReaders, ReadOnTheReadersDevices) {
  const auto reading = [](const Scenario& scenario, double slower, Task task) {
    const auto ttft = [&](Scenario point) {
      point = read_elsewhere(std::move(point), task);
      point.transfer.first_token = FirstToken::prefill;
      Device& device = point.prefill.deployment.device;
      device.peak.bf16 = device.peak.bf16 / slower;
      device.memory_bandwidth = device.memory_bandwidth / slower;
      device.vector_peak = device.vector_peak / slower;
      return sound(point).metrics.ttft.value;
    };
    return ttft(scenario) - ttft(plain());
  };
  for (const Task task : {Task::serve, Task::request}) {
    for (const Scenario& scenario : {drafted(), layered()}) {
      const double here = reading(scenario, 1, task), there = reading(scenario, 4, task);
      EXPECT_GT(here, 0);
      EXPECT_GT(there, 2.5 * here);
    }
  }
}

// A draft that reads prompts when it is first asked, and one on devices of its own, are not there.
TEST(DraftsBesideReaders, AreNotThereWhereTheyReadElsewhere) {
  const Metrics alone = sound(read_elsewhere(plain())).metrics;
  Scenario late = read_elsewhere(drafted()), apart = late;
  late.speculation.dynamic = true;
  apart.draft.deployment.device.clock = Hertz{1.9e9};
  for (const Scenario& scenario : {late, apart}) {
    const Metrics figures = sound(scenario).metrics;
    EXPECT_NEAR(figures.prefill_kv_peak / alone.prefill_kv_peak, 1, 1e-9);
    EXPECT_NEAR(figures.transfer / alone.transfer, 1, 1e-3);
  }
}

// What it does there, all devices of the readers do: the point's energy and utilisation count it so.
TEST(DraftsBesideReaders, WorkOnTheDevicesOfTheReaders) {
  for (const std::int64_t readers : {1, 2, 4}) {
    Scenario scenario = drafted();
    scenario.device.idle_power = Watts{100};
    scenario.device.busy_power = scenario.device.memory_power = Watts{150};
    scenario.device.tensor_power = Watts{300};
    scenario.device.power_limit = Watts{900};
    scenario = read_elsewhere(scenario);
    scenario.prefill.deployment.parallel.tp = readers;
    const Outcome outcome = sound(scenario);
    const Metrics& metrics = outcome.metrics;
    double joules = 0, flops = 0, read_by_drafts = 0;
    for (const KernelRow& row : outcome.kernels) {
      const bool reads = row.phase == Phase::prefill;
      const double devices = reads ? double(readers) : 1;
      joules += row.work.energy.value * devices;
      flops += row.work.flops.value * devices;
      if (reads && row.role == DeploymentRole::draft) {
        read_by_drafts += row.work.energy.value * devices;
      }
    }
    const double idle =
        1 - metrics.utilization + double(readers) * (1 - metrics.prefill_utilization);
    joules += 100 * idle * metrics.makespan.value;
    EXPECT_NEAR(metrics.energy.value / joules, 1, 1e-3) << readers;
    EXPECT_GT(read_by_drafts, 0.015 * joules);
    const double possible =
        scenario.device.peak.bf16.value * metrics.devices * metrics.makespan.value;
    EXPECT_NEAR(metrics.model_flops_utilization * possible / flops, 1, 1e-3) << readers;
  }
}

// Readers may have more devices than those who answer, or fewer; a draft on all devices of its replica is on all of them there.
TEST(DraftsBesideReaders, FitWhateverTheReadersLayout) {
  for (const std::int64_t readers : {1, 2, 4}) {
    for (const std::int64_t draft : {1, 2}) {
      Scenario scenario = drafted();
      scenario.parallel.tp = 2;
      scenario = read_elsewhere(scenario);
      scenario.prefill.deployment.parallel.tp = readers;
      scenario.draft.deployment.parallel.tp = draft;
      EXPECT_GT(sound(scenario).metrics.ttft.value, 0) << readers << " " << draft;
    }
  }
}

}  // namespace
}  // namespace engine
