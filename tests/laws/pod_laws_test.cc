// Laws of pods: nodes that reach one another at full rate, and others over ways that all of them share.
#include <gtest/gtest.h>

#include "engine/comm/collective_time.h"
#include "engine/evaluate.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr std::int64_t kPod = 4;

Cluster pods(double oversubscription) {
  Cluster cluster;
  cluster.devices_per_node = 8;
  cluster.nodes = 64;
  cluster.pod_nodes = kPod;
  cluster.oversubscription = oversubscription;
  return cluster;
}

Device device() {
  Device device = toys::gpu();
  device.architecture = "Hopper";
  device.scale_up.bandwidth = BytesPerSecond{1e14};  // no part of any time below
  device.scale_out = device.scale_up;
  device.scale_out.bandwidth = BytesPerSecond{50e9};
  return device;
}

// From the datasheets and by the shipped parameters.
double transfer_of(const Collective& op, double oversubscription, bool fitted) {
  const Device on = device();
  return collective_time(op, fabric_of(pods(oversubscription), on), on,
                         fitted ? &toys::transfer() : nullptr)
      .transfer.value;
}

constexpr double kLarge = 1e9;

TEST(Pods, WhoStaysInsideOneDoesNotSeeIt) {
  for (const bool fitted : {false, true}) {
    for (const Pattern pattern : {Pattern::all_reduce, Pattern::all_gather, Pattern::all_to_all}) {
      const Collective op{.pattern = pattern, .bytes = kLarge, .ranks = 8 * kPod};
      EXPECT_EQ(transfer_of(op, 16, fitted), transfer_of(op, 1, fitted));
    }
  }
}

TEST(Pods, ARingLeavesEachPodOnce) {
  for (const bool fitted : {false, true}) {
    // One node of four sends to another pod: a way out of a quarter of the adapters is enough.
    const Collective ring{.pattern = Pattern::reduce_scatter, .bytes = kLarge, .ranks = 8 * 16};
    EXPECT_EQ(transfer_of(ring, double(kPod), fitted), transfer_of(ring, 1, fitted));
    EXPECT_NEAR(transfer_of(ring, 2.0 * kPod, fitted) / transfer_of(ring, 1, fitted), 2, 0.1);
    // Whose neighbours are a pod away, all of its nodes send there.
    const Collective far{
        .pattern = Pattern::reduce_scatter, .bytes = kLarge, .ranks = 16, .stride = 8 * kPod};
    EXPECT_NEAR(transfer_of(far, 4, fitted) / transfer_of(far, 1, fitted), 4, 0.1);
  }
}

TEST(Pods, AnAllToAllLeavesInProportionToWhatLiesOutside) {
  for (const bool fitted : {false, true}) {
    const Collective op{.pattern = Pattern::all_to_all, .bytes = kLarge, .ranks = 8 * 16};
    const double outside = 12.0 / 15;
    EXPECT_NEAR(transfer_of(op, 10, fitted) / transfer_of(op, 1, fitted), 10 * outside, 0.2);
    // Where the way out carries all that leaves, nobody waits.
    EXPECT_EQ(transfer_of(op, 1 / outside, fitted), transfer_of(op, 1, fitted));
  }
}

TEST(Pods, AThinnerWayOutIsNeverFaster) {
  Scenario scenario = toys::scenario();
  scenario.model = toys::mixture();
  scenario.device = device();
  scenario.device.memory_capacity = Bytes{1e13};
  scenario.parallel.dp = scenario.parallel.ep = 64;
  Seconds before{0};
  for (const double oversubscription : {1.0, 1.5, 2.0, 4.0, 8.0}) {
    scenario.cluster = pods(oversubscription);
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    EXPECT_GE(outcome.metrics.step_time, before) << oversubscription;
    before = outcome.metrics.step_time;
  }
  // One pod that holds everybody has no way out.
  scenario.cluster.pod_nodes = 64;
  const Seconds one_pod = evaluate(scenario).metrics.step_time;
  scenario.cluster = pods(1);
  EXPECT_EQ(one_pod, evaluate(scenario).metrics.step_time);
  EXPECT_GT(before, one_pod);
}

}  // namespace
}  // namespace engine
