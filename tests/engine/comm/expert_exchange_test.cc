// The exchange of tokens with their experts, inside a node and between nodes.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/comm/collective_time.h"
#include "engine/model/expert_places.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// 1000 tokens of 1000 numbers, two bytes each: two megabytes a copy. Nobody is sent more than others.
ExpertExchange tokens_to(std::int64_t ranks) {
  return {.tokens = 1000,
          .hidden = 1000,
          .top_k = 2,
          .experts = 64,
          .ranks = ranks,
          .receiver = ExpertExchange::Receiver::mean};
}

TEST(ExpertExchange, InsideANodeATokenGoesOnceToEachDevice) {
  const Device device = toys::gpu();
  const CollectiveTime time =
      exchange_time(tokens_to(8), fabric_of(Cluster{}, device), device, nullptr);
  // Two choices among eight devices reach 1.875 of them, and one in eight is the sender.
  EXPECT_NEAR(time.transfer.value, 1.875 * 7 / 8 * 2e6 / 100e9, 1e-12);
  EXPECT_NEAR(time.latency.value, 2e-6, 1e-12);  // the kernel and one message
}

TEST(ExpertExchange, BetweenNodesATokenGoesOnceToEachNode) {
  const Device device = toys::gpu();
  const CollectiveTime time =
      exchange_time(tokens_to(16), fabric_of(Cluster{}, device), device, nullptr);
  // Two choices among two nodes reach 1.5 of them, and every second is the sender's own.
  EXPECT_NEAR(time.transfer.value, 0.75 * 2e6 / 10e9, 1e-12);
  EXPECT_EQ(time.algorithm, Algorithm::hierarchical);
}

TEST(ExpertExchange, DevicesAloneOnTheirNodesNeedNoLinkInside) {
  Device device = toys::gpu();
  device.scale_up = device.host_link = Link{};
  Fabric fabric = fabric_of(Cluster{}, device);
  fabric.devices_per_node = 1;
  for (const Calibration* calibration :
       {static_cast<const Calibration*>(nullptr), &toys::transfer()}) {
    const Seconds time = exchange_time(tokens_to(4), fabric, device, calibration).total();
    EXPECT_GT(time.value, 0.0);
    EXPECT_LT(time.value, 1.0);
  }
}

TEST(ExpertExchange, NobodyElseToSendToTakesNoTime) {
  const Device device = toys::gpu();
  EXPECT_EQ(
      exchange_time(tokens_to(1), fabric_of(Cluster{}, device), device, nullptr).total().value, 0);
}

// H800 with one adapter of 50 GB/s a device.
Device h800() {
  Device device = toys::gpu();
  device.architecture = "Hopper";
  device.scale_up.bandwidth = BytesPerSecond{200e9};
  device.scale_up.latency = Seconds{0.9e-6};
  device.scale_out.bandwidth = BytesPerSecond{50e9};
  device.scale_out.latency = Seconds{2.5e-6};
  return device;
}

// Published times of DeepEP V1's low-latency kernels (deepseek-ai/DeepEP, docs/legacy.md): 128 tokens of
// 7168 numbers, eight experts each of 256, 8 bits to the experts and 16 back. No fit has seen them: the share
// of the adapter is that of sends between nodes in the public tables.
TEST(ExpertExchange, LowLatencyBetweenNodesIsNearThePublishedTimes) {
  struct Published {
    std::int64_t ranks;
    double dispatch, combine;  // us
  };
  const Device device = h800();
  const Fabric fabric = fabric_of(Cluster{}, device);
  for (const Published& published :
       {Published{16, 118, 195}, Published{32, 155, 273}, Published{64, 173, 314},
        Published{128, 192, 369}, Published{256, 194, 360}}) {
    ExpertExchange op{.tokens = 128,
                      .hidden = 7168,
                      .top_k = 8,
                      .experts = 256,
                      .ranks = published.ranks,
                      .value_bytes = 1,
                      .kernels = ExpertExchange::Kernels::low_latency};
    const CollectiveTime there = exchange_time(op, fabric, device, &toys::transfer());
    op.way = ExpertExchange::Way::combine;
    op.value_bytes = 2;
    const CollectiveTime back = exchange_time(op, fabric, device, &toys::transfer());
    EXPECT_NEAR(there.total().value * 1e6 / published.dispatch, 1, 0.4) << published.ranks;
    EXPECT_NEAR(back.total().value * 1e6 / published.combine, 1, 0.4) << published.ranks;
    EXPECT_TRUE(there.extrapolated && back.extrapolated);
  }
}

// The same source's kernels for many tokens: 4096 tokens, at most four of eight groups; it counts one
// message for every node reached, the sender's own included.
TEST(ExpertExchange, CopiesPerNodeAreNearThePublishedRates) {
  struct Published {
    std::int64_t ranks;
    double rate;  // GB/s
  };
  const Device device = h800();
  const Fabric fabric = fabric_of(Cluster{}, device);
  for (const Published& published : {Published{16, 43}, Published{32, 58}, Published{64, 51}}) {
    const ExpertExchange op{.tokens = 4096,
                            .hidden = 7168,
                            .top_k = 8,
                            .experts = 256,
                            .groups = 8,
                            .top_groups = 4,
                            .ranks = published.ranks,
                            .value_bytes = 1,
                            .kernels = ExpertExchange::Kernels::normal};
    const double nodes = double(published.ranks) / 8;
    const double reached = places_reached(std::min(nodes, 4.0), 8);
    const double bytes = 4096 * 7168 * reached;
    const double time = exchange_time(op, fabric, device, &toys::transfer()).total().value;
    EXPECT_NEAR(bytes / time / 1e9 / published.rate, 1, 0.4) << published.ranks;
  }
}

}  // namespace
}  // namespace engine
