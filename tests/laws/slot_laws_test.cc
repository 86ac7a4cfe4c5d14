// Cards in the slots of a host: what one sends over the bus to others.
#include <gtest/gtest.h>

#include "engine/comm/collective_time.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

Device card(const char* name) { return toys::shipped("devices", name).device; }

Fabric in_server(const char* name, const char* server) {
  return fabric_of(toys::shipped("clusters", server).cluster, card(name));
}

// As nccl-tests count it: all data but one's own, there and back, over the time.
double bus_bandwidth(const char* name, const char* server, double ranks) {
  constexpr double bytes = 2e9;
  const Device device = card(name);
  const Collective sum{
      .pattern = Pattern::all_reduce, .bytes = bytes, .ranks = std::int64_t(ranks)};
  const CollectiveTime time =
      collective_time(sum, in_server(name, server), device, &toys::transfer());
  return 2 * (ranks - 1) / ranks * bytes / time.total().value;
}

// A PCIe 4 card in a PCIe 5 server has a PCIe 4 link.
TEST(Slots, CarryNoMoreThanTheCardDoes) {
  for (const char* name : {"l40s", "rtx-4090", "a10", "a100-80gb-pcie", "t4"}) {
    const Fabric newer = in_server(name, "pcie-5-8gpu-server");
    EXPECT_EQ(newer.inside(8).bandwidth, fabric_of({}, card(name)).bus.bandwidth) << name;
  }
  EXPECT_EQ(in_server("rtx-pro-6000", "pcie-5-8gpu-server").inside(8).bandwidth.value, 64e9);
  EXPECT_EQ(in_server("rtx-pro-6000", "l40s-server").inside(8).bandwidth.value, 32e9);
}

// All they send goes through the host's memory, in and out by turns.
TEST(Slots, OfGeForceCardsGoThroughTheHost) {
  const double with_access = bus_bandwidth("rtx-pro-6000", "pcie-5-8gpu-server", 8);
  EXPECT_NEAR(bus_bandwidth("rtx-5090", "pcie-5-8gpu-server", 8) / with_access, 0.5, 0.03);
  EXPECT_GT(bus_bandwidth("rtx-pro-6000", "pcie-5-8gpu-server", 8), 40e9);
}

// Bridges of two are the cards' own; what goes beyond them is the bus's, and copies to the host are as fast as ever.
TEST(Slots, LeaveBridgesAndCopiesAlone) {
  Device bridged = card("rtx-3090");
  ASSERT_FALSE(bridged.peer_access);
  const Fabric apart = fabric_of({}, bridged);
  bridged.peer_access = true;
  const Fabric with_access = fabric_of({}, bridged);
  EXPECT_EQ(apart.inside(2), with_access.inside(2));
  EXPECT_EQ(apart.host_link, with_access.host_link);
  EXPECT_LT(apart.inside(4).bandwidth, with_access.inside(4).bandwidth * 0.7);
}

}  // namespace
}  // namespace engine
