// Which deployments stand in one cluster: a figure of a device that a sweep changes moves nobody out of it.
#include <gtest/gtest.h>

#include "engine/tasks/handover.h"
#include "tests/support/serving_toys.h"

namespace engine {
namespace {

// One that reads and one that writes, in a node of eight.
Scenario two_pools() {
  Scenario scenario = toys::served_at(5);
  scenario.load.requests = 300;
  scenario.cluster.devices_per_node = 8;
  scenario.prefill.present = true;
  fill_roles(scenario);
  return scenario;
}

TEST(OneCluster, AChangedDeviceStaysInItsNode) {
  const Scenario equal = two_pools();
  ASSERT_FALSE(leaves_a_node(equal));
  Scenario faster = equal;
  faster.prefill.deployment.device.memory_bandwidth *= 1.003;
  Scenario larger = equal;
  larger.prefill.deployment.device.memory_capacity *= 1.01;
  for (const Scenario& changed : {faster, larger}) {
    EXPECT_FALSE(leaves_a_node(changed));
    // More bandwidth makes no transfer longer.
    EXPECT_NEAR(evaluate(changed).metrics.transfer / evaluate(equal).metrics.transfer, 1, 0.01);
  }
}

TEST(OneCluster, ADeviceOfAnotherKindStandsElsewhere) {
  Scenario other = two_pools();
  other.prefill.deployment.device.name = "other";
  EXPECT_FALSE(leaves_a_node(other));  // but for its name it is the same
  other.prefill.deployment.device.memory_bandwidth *= 1.003;
  EXPECT_TRUE(leaves_a_node(other));
  // Devices without a name are of one kind where they are equal.
  Scenario unnamed = two_pools();
  unnamed.device.name = unnamed.prefill.deployment.device.name = Device{}.name;
  EXPECT_FALSE(leaves_a_node(unnamed));
  unnamed.prefill.deployment.device.memory_bandwidth *= 1.003;
  EXPECT_TRUE(leaves_a_node(unnamed));
}

// All that stand in it have room in it, whatever they do there.
TEST(OneCluster, HoldsWhatStandsInIt) {
  Scenario scenario = two_pools();
  scenario.cluster.nodes = 1;
  scenario.load.images = 1;
  scenario.load.image_tokens = 60;
  scenario.encode.present = true;
  fill_roles(scenario);
  scenario.serving.replicas = 4;
  scenario.prefill.deployment.serving.replicas = 2;
  scenario.encode.deployment.serving.replicas = 2;
  EXPECT_EQ(evaluate(scenario).status, Status::ok) << evaluate(scenario).reason;
  scenario.encode.deployment.serving.replicas = 3;
  EXPECT_EQ(evaluate(scenario).reason,
            "prefill needs 2 devices, encode needs 3 devices and the main deployment 4; the "
            "cluster that they share has 8");
  // Elsewhere there is room.
  Scenario apart = scenario;
  apart.encode.deployment.cluster.nodes = 2;
  EXPECT_EQ(evaluate(apart).status, Status::ok) << evaluate(apart).reason;
  // Encoders on the devices of those who read need none.
  scenario.prefill.deployment.serving.encodes_images = true;
  EXPECT_EQ(evaluate(scenario).status, Status::ok) << evaluate(scenario).reason;
  scenario.prefill.deployment.serving.replicas = 5;
  EXPECT_EQ(evaluate(scenario).reason,
            "prefill needs 5 devices and the main deployment 4; the cluster that they share has 8");
}

}  // namespace
}  // namespace engine
