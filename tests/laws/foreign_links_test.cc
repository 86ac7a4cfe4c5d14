// A cluster hands its links to whatever devices stand in it; a row says so where they have no ports for them.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

bool marked(const Scenario& scenario) {
  return evaluate(scenario, toys::transfer_resources()).metrics.foreign_links == 1;
}

Scenario on(const char* device, const char* cluster) {
  Scenario scenario = toys::scenario();
  scenario.device = toys::shipped("devices", device).device;
  if (cluster != nullptr) scenario.cluster = toys::shipped("clusters", cluster).cluster;
  scenario.parallel.tp = 8;
  return scenario;
}

TEST(ForeignLinks, DevicesWithoutPortsForAClustersLinksAreMarked) {
  for (const char* device : {"rtx-4090", "l40s", "mi300x", "tpu-v6e", "b200-sxm", "h100-pcie"}) {
    EXPECT_TRUE(marked(on(device, "dgx-h100"))) << device;
    EXPECT_FALSE(marked(on(device, nullptr))) << device;
  }
  for (const char* device : {"h100-sxm", "h200-sxm", "h20"}) {
    EXPECT_FALSE(marked(on(device, "dgx-h100"))) << device;
  }
  // A switch or a mesh of the same ports, and the bus of a server, which every card has.
  EXPECT_FALSE(marked(on("v100-sxm-32gb", "dgx-2")));
  EXPECT_FALSE(marked(on("trainium-2", "trn2-ultraserver")));
  EXPECT_FALSE(marked(on("h100-nvl", "pcie-5-8gpu-server")));
  // One device is joined to no other.
  Scenario alone = on("rtx-4090", "dgx-h100");
  alone.parallel.tp = 1;
  EXPECT_FALSE(marked(alone));
}

// So many nodes of so many devices, which keep the links that they have.
TEST(ForeignLinks, AClusterThatStatesNoLinksHasThoseOfItsDevices) {
  for (const char* device : {"rtx-4090", "mi300x", "tpu-v6e", "h100-sxm"}) {
    Scenario scenario = on(device, nullptr);
    scenario.cluster.nodes = 32;
    scenario.cluster.devices_per_node = 8;
    const Fabric fabric = fabric_of(scenario.cluster, scenario.device);
    const Fabric own = fabric_of(Cluster{}, scenario.device);
    EXPECT_EQ(fabric.scale_up, own.scale_up) << device;
    EXPECT_EQ(fabric.scale_out, own.scale_out) << device;
    EXPECT_EQ(fabric.most_devices, 256) << device;
    EXPECT_FALSE(marked(scenario)) << device;
  }
}

// Every shipped cluster joins some shipped devices by their own ports, and every link with ports says whose.
TEST(ForeignLinks, EveryShippedClusterHasDevicesOfItsOwn) {
  for (const std::string& name : sweep::Library({paths::specs()}).names("clusters")) {
    const Cluster cluster = toys::shipped("clusters", name.c_str()).cluster;
    const auto at_home = [&](const Device& device) { return !has_foreign_links(cluster, device); };
    const std::vector<Device> devices = toys::shipped_devices();
    EXPECT_TRUE(std::ranges::any_of(devices, at_home)) << name;
    const bool switched =
        cluster.scale_up.topology != Topology::none && cluster.scale_up.topology != Topology::bus;
    EXPECT_TRUE(!switched || !cluster.scale_up.family.empty()) << name;
  }
}

}  // namespace
}  // namespace engine
