// A neighbour of a deployment that does not do everything itself: only what runs on the devices that both share is slower.
#include <gtest/gtest.h>

#include <string>

#include "engine/evaluate.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// Twins that take turns for free, with links to devices of other deployments on which nothing takes time.
Scenario served_twins() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.host = toys::no_host();
  scenario.load.rate = RequestsPerSecond{20};
  scenario.load.requests = 400;
  scenario.load.lengths = {.prompt = 200, .output = 40};
  scenario.load.measure = MeasureKind::whole;
  scenario.device.scale_out = {.name = "wire",
                               .topology = Topology::fabric,
                               .bandwidth = BytesPerSecond{1e18},
                               .latency = Seconds{0},
                               .devices = 64};
  scenario.neighbour.present = true;
  scenario.sharing = {.mode = SharingMode::time_slices, .switch_time = Seconds{0}};
  return scenario;
}

Scenario with_readers() {
  Scenario scenario = served_twins();
  scenario.prefill.present = true;
  scenario.transfer.first_token = FirstToken::prefill;
  fill_roles(scenario);
  return scenario;
}

// Two images of 60 tokens each, whose encoder is a layer of the main model; the neighbour's requests have none.
Scenario with_images(bool by_replicas) {
  Scenario scenario = served_twins();
  scenario.load.images = 2;
  scenario.load.image_tokens = 60;
  scenario.serving.encodes_images = by_replicas;
  scenario.encode.present = true;
  fill_roles(scenario);
  scenario.neighbour.load.images = 0;
  scenario.encode.deployment.model.layers = 1;
  return scenario;
}

Outcome sound(const Scenario& scenario) {
  Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome;
}

Metrics alone(Scenario scenario) {
  scenario.neighbour.present = false;
  // With as much memory as beside the neighbour.
  scenario.device.memory_capacity = scenario.device.memory_capacity * scenario.sharing.memory;
  return sound(scenario).metrics;
}

double seconds_of(const Outcome& outcome, DeploymentRole role) {
  double seconds = 0;
  for (const KernelRow& row : outcome.kernels) {
    if (row.role == role) seconds += row.work.exposed().value;
  }
  return seconds;
}

TEST(NeighbourPools, WhoReadsPromptsElsewhereIsNotSlowedDown) {
  for (const SharingMode mode :
       {SharingMode::time_slices, SharingMode::streams, SharingMode::spatial, SharingMode::mig}) {
    Scenario scenario = with_readers();
    scenario.sharing.mode = mode;
    const Outcome shared = sound(scenario);
    const Metrics by_itself = alone(scenario);
    // A reader tells the first token, on devices of its own.
    EXPECT_NEAR(shared.metrics.ttft_p99 / by_itself.ttft_p99, 1, 1e-9) << name_of(mode);
    EXPECT_NEAR(shared.metrics.sharing_slowdown, shared.metrics.tpot / by_itself.tpot, 1e-9);
    EXPECT_GT(shared.metrics.sharing_slowdown, 1) << name_of(mode);
    EXPECT_EQ(shared.metrics.devices, by_itself.devices) << name_of(mode);
    // Rows of either pool are the time that it was busy.
    const double makespan = shared.metrics.makespan.value;
    EXPECT_NEAR(seconds_of(shared, DeploymentRole::prefill),
                shared.metrics.prefill_utilization * makespan, 1e-9 * makespan);
    EXPECT_NEAR(seconds_of(shared, DeploymentRole::main), shared.metrics.utilization * makespan,
                1e-9 * makespan);
  }
}

// Only decodes of the main model ask for the devices: how slow the neighbour is does not follow from where prompts are read.
TEST(NeighbourPools, OnlyWhatRunsOnTheDevicesSlowsTheNeighbourDown) {
  Scenario scenario = with_readers();
  scenario.sharing.mode = SharingMode::streams;
  scenario.load.lengths.prompt = 2000;
  scenario.load.rate = RequestsPerSecond{5};
  const double one = sound(scenario).metrics.neighbour_slowdown;
  scenario.prefill.deployment.device.memory_bandwidth =
      scenario.prefill.deployment.device.memory_bandwidth * 3;
  scenario.prefill.deployment.serving.replicas = 4;
  EXPECT_NEAR(sound(scenario).metrics.neighbour_slowdown / one, 1, 0.01);
  scenario.prefill.present = false;
  EXPECT_GT(sound(scenario).metrics.neighbour_slowdown, one * 1.01);
}

TEST(NeighbourPools, EncodersOnDevicesOfTheirOwnAreNotSlowedDown) {
  const Scenario scenario = with_images(false);
  const Outcome shared = sound(scenario);
  const Metrics by_itself = alone(scenario);
  EXPECT_NEAR(shared.metrics.encode / by_itself.encode, 1, 1e-12);
  EXPECT_GT(shared.metrics.sharing_slowdown, 1);
  EXPECT_GT(shared.metrics.ttft, by_itself.ttft);
}

TEST(NeighbourPools, ReplicasThatEncodeAreSlowedDownInThat) {
  const Scenario scenario = with_images(true);
  const Outcome shared = sound(scenario);
  Scenario single = scenario;
  single.neighbour.present = false;
  const Outcome by_itself = sound(single);
  // As many images as before, and what they wait for the neighbour's turns.
  const double encoding = seconds_of(by_itself, DeploymentRole::encode);
  EXPECT_GT(encoding, 0);
  EXPECT_GT(seconds_of(shared, DeploymentRole::encode), 1.05 * encoding);
  const double rows =
      seconds_of(shared, DeploymentRole::main) + seconds_of(shared, DeploymentRole::encode);
  const Metrics& figures = shared.metrics;
  EXPECT_NEAR(rows, (figures.utilization * figures.makespan).value, 1e-9 * rows);
  EXPECT_NEAR(figures.encode_share, seconds_of(shared, DeploymentRole::encode) / rows, 1e-9);
}

TEST(NeighbourPools, ImagesOfTheNeighboursRequestsAreRefused) {
  Scenario scenario = with_images(false);
  scenario.neighbour.load.images = 1;
  EXPECT_EQ(evaluate(scenario).reason,
            "images of a neighbour's requests are not modelled: state neighbour.load.images: 0");
}

}  // namespace
}  // namespace engine
