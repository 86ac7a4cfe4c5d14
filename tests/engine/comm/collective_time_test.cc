#include "engine/comm/collective_time.h"

#include <gtest/gtest.h>

#include "tests/support/toys.h"

namespace engine {
namespace {

Fabric toy_fabric() { return fabric_of(Cluster{}, toys::gpu()); }

CollectiveTime time_of(Pattern pattern, double bytes, std::int64_t ranks, const Fabric& fabric) {
  return collective_time({.pattern = pattern, .bytes = bytes, .ranks = ranks}, fabric,
                         Seconds{1e-6});
}

TEST(Collective, OneDeviceHasNoCommunication) {
  EXPECT_EQ(time_of(Pattern::all_reduce, 1e9, 1, toy_fabric()).total().value, 0);
}

TEST(Collective, LargeAllReduceMovesTwiceTheShare) {
  const CollectiveTime time = time_of(Pattern::all_reduce, 8e9, 8, toy_fabric());
  EXPECT_DOUBLE_EQ(time.transfer.value, 2 * 7.0 / 8 * 8e9 / 100e9);
  EXPECT_EQ(time.algorithm, Algorithm::two_shot);
  EXPECT_DOUBLE_EQ(time.latency.value, 1e-6 + 2e-6);
}

TEST(Collective, SmallAllReduceTakesOneShot) {
  EXPECT_EQ(time_of(Pattern::all_reduce, 1024, 8, toy_fabric()).algorithm, Algorithm::one_shot);
}

TEST(Collective, ASwitchThatSumsHalvesTheTraffic) {
  Fabric fabric = toy_fabric();
  fabric.scale_up.in_network_reduction = true;
  const CollectiveTime time = time_of(Pattern::all_reduce, 8e9, 8, fabric);
  EXPECT_EQ(time.algorithm, Algorithm::in_network);
  EXPECT_DOUBLE_EQ(time.transfer.value, 8e9 / 100e9);
}

TEST(Collective, ARingPaysForEveryHop) {
  Fabric fabric = toy_fabric();
  fabric.scale_up.topology = Topology::ring;
  const CollectiveTime time = time_of(Pattern::all_reduce, 8, 8, fabric);
  EXPECT_EQ(time.algorithm, Algorithm::ring);
  EXPECT_NEAR(time.latency.value, 1e-6 + 14e-6, 1e-12);
}

TEST(Collective, HalfAMeshHasItsShareOfTheLinks) {
  Fabric fabric = toy_fabric();
  fabric.scale_up.topology = Topology::mesh;
  // Eight devices, seven links each: a pair has one of the seven.
  const CollectiveTime pair = time_of(Pattern::all_gather, 7e9, 2, fabric);
  EXPECT_DOUBLE_EQ(pair.transfer.value, 3.5e9 / (100e9 / 7));
}

TEST(Collective, BridgedPairsGoThroughTheHostBeyondTwo) {
  Fabric fabric = toy_fabric();
  fabric.scale_up.topology = Topology::pairs;
  EXPECT_DOUBLE_EQ(time_of(Pattern::all_gather, 2e9, 2, fabric).transfer.value, 1e9 / 100e9);
  EXPECT_DOUBLE_EQ(time_of(Pattern::all_gather, 4e9, 4, fabric).transfer.value, 3e9 / 20e9);
}

TEST(Collective, AcrossNodesTheNetworkCarriesOneShareADevice) {
  // 16 devices on two nodes: inside at 100 GB/s, an eighth of the message across at 10 GB/s.
  const CollectiveTime time = time_of(Pattern::all_reduce, 8e9, 16, toy_fabric());
  EXPECT_EQ(time.algorithm, Algorithm::hierarchical);
  EXPECT_DOUBLE_EQ(time.transfer.value, 2 * 7e9 / 100e9 + 1e9 / 10e9);
}

TEST(Collective, MoreBandwidthAndLessLatencyAreNeverSlower) {
  for (const Pattern pattern : {Pattern::all_reduce, Pattern::all_gather, Pattern::reduce_scatter,
                                Pattern::all_to_all, Pattern::send_recv}) {
    for (const Topology topology :
         {Topology::fabric, Topology::mesh, Topology::ring, Topology::pairs}) {
      for (std::int64_t ranks = 2; ranks <= 64; ranks *= 2) {
        for (double bytes = 16; bytes < 1e10; bytes *= 7) {
          Fabric slow = toy_fabric();
          slow.scale_up.topology = topology;
          Fabric fast = slow;
          fast.scale_up.bandwidth *= 2;
          fast.scale_out.bandwidth *= 2;
          Fabric prompt = slow;
          prompt.scale_up.latency *= 0.5;
          const Seconds time = time_of(pattern, bytes, ranks, slow).total();
          EXPECT_LE(time_of(pattern, bytes, ranks, fast).total(), time);
          EXPECT_LE(time_of(pattern, bytes, ranks, prompt).total(), time);
          EXPECT_LE(time, time_of(pattern, 2 * bytes, ranks, slow).total());
        }
      }
    }
  }
}

}  // namespace
}  // namespace engine
