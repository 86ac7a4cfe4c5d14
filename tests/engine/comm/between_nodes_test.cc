// Collectives between nodes by the fitted form.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/comm/collective_time.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// One protocol that matters: 10 us and 2 us a doubling of the ranks, 80% of the adapter.
Calibration by_hand() {
  Calibration calibration;
  auto& set = calibration.between[static_cast<std::size_t>(CollectiveKind::all_reduce)].edit(
      ParameterSet::pooled);
  set.fit = {.small_start = 10,
             .small_doubling = 2,
             .small_share = 0.8,
             .middle_start = 1e9,
             .large_start = 1e9,
             .softness = 30,
             .link_latency = 5};
  set.low = 0.9;
  set.high = 1.2;
  return calibration;
}

// Two nodes of four toys; the adapter has 10 GB/s and the latency that was fitted.
Fabric two_nodes() {
  Fabric fabric = fabric_of(Cluster{}, toys::gpu());
  fabric.devices_per_node = 4;
  fabric.scale_out = {.topology = Topology::fabric,
                      .bandwidth = BytesPerSecond{10e9},
                      .latency = Seconds{5e-6},
                      .devices = 100};
  return fabric;
}

Collective call(Pattern pattern, double bytes, std::int64_t ranks = 8) {
  return {.pattern = pattern, .bytes = bytes, .ranks = ranks};
}

TEST(BetweenNodes, EveryAdapterCarriesItsShareOfTheRing) {
  const Calibration fit = by_hand();
  const CollectiveTime time =
      collective_time(call(Pattern::all_reduce, 4e9), two_nodes(), toys::gpu(), &fit);
  EXPECT_NEAR(time.latency.value, (10 + 2 * 3) * 1e-6, 1e-12);
  EXPECT_NEAR(time.transfer.value, 2 * 7.0 / 8 * 1e9 / (0.8 * 10e9), 1e-9);
  EXPECT_EQ(time.algorithm, Algorithm::hierarchical);
  EXPECT_EQ(time.tier, Tier::transfer);
  // Nothing was fitted to a toy's generation: adapters may carry more of what they could.
  EXPECT_NEAR(time.low * time.total().value, 16e-6 + 0.175 / 0.925, 1e-9);
}

// Large messages between nodes other than those that were measured may be as fast as nine tenths of the adapters carry, and
// never faster than all of them; where they were measured, the interval is that of the fit.
TEST(BetweenNodes, OutsideTheDataIntervalsReachDownToTheAdapters) {
  Device hopper = toys::gpu(), ampere = toys::gpu();
  hopper.architecture = "Hopper";
  ampere.architecture = "Ampere";
  for (const Pattern pattern :
       {Pattern::all_reduce, Pattern::all_gather, Pattern::reduce_scatter}) {
    const double passes = pattern == Pattern::all_reduce ? 2 : 1;
    for (const double bytes : {1e8, 1e9, 1e10}) {
      for (const std::int64_t ranks : {8, 64, 512}) {
        const CollectiveTime time =
            collective_time(call(pattern, bytes, ranks), two_nodes(), hopper, &toys::transfer());
        const double moved = passes * (1 - 1 / double(ranks)) * bytes / 4 / 10e9;
        const double shortest = time.low * time.total().value;
        EXPECT_LE(shortest, time.latency.value + moved / 0.9) << bytes << " " << ranks;
        EXPECT_GE(shortest, moved) << bytes << " " << ranks;
        EXPECT_GT(time.high, 1);
      }
    }
  }
  const auto& fits = toys::transfer().between[std::size_t(CollectiveKind::all_reduce)];
  const CollectiveTime measured =
      collective_time(call(Pattern::all_reduce, 1e7), two_nodes(), ampere, &toys::transfer());
  EXPECT_FALSE(measured.extrapolated);
  EXPECT_EQ(measured.low, fits.find(ParameterSet::ampere)->low);
}

TEST(BetweenNodes, PatternsNobodyMeasuredAreHalfAnAllReduceAndSaySo) {
  const Calibration fit = by_hand();
  const CollectiveTime time =
      collective_time(call(Pattern::all_gather, 4e9), two_nodes(), toys::gpu(), &fit);
  EXPECT_NEAR(time.total().value, 8e-6 + 7.0 / 8 * 1e9 / (0.8 * 10e9), 1e-9);
  EXPECT_TRUE(time.extrapolated);
}

// Nobody measured sums between nodes of H100s: their large messages are as fast as their sends.
TEST(BetweenNodes, LargeMessagesOfRingsReachWhatSendsDo) {
  Device hopper = toys::gpu();
  hopper.architecture = "Hopper";
  const Fabric fabric = two_nodes();
  const auto rate = [&](Pattern pattern, double travelling) {
    const double bytes = 64e9;
    const CollectiveTime time =
        collective_time({.pattern = pattern, .bytes = bytes, .ranks = 8, .per_node = 1}, fabric,
                        hopper, &toys::transfer());
    return travelling * bytes / time.transfer.value / fabric.scale_out.bandwidth.value;
  };
  EXPECT_NEAR(rate(Pattern::all_gather, 7.0 / 8), rate(Pattern::send_recv, 1), 0.04);
  EXPECT_NEAR(rate(Pattern::all_reduce, 2 * 7.0 / 8), rate(Pattern::send_recv, 1), 0.04);
}

// Where nobody measured sums between nodes, a small one takes what it takes inside a node and a send up and one down; a large
// one is bound by the slower of the two.
TEST(BetweenNodes, SumsArePutTogetherFromSendsAndSumsInside) {
  Device hopper = toys::gpu();
  hopper.architecture = "Hopper";
  Fabric fabric = two_nodes();
  fabric.devices_per_node = 8;
  const auto time = [&](Pattern pattern, double bytes, std::int64_t ranks, std::int64_t per_node) {
    const Collective op{.pattern = pattern,
                        .bytes = bytes,
                        .ranks = ranks,
                        .library = Library::general,
                        .per_node = per_node};
    return collective_time(op, fabric, hopper, &toys::transfer()).total().value;
  };
  const double small = 16e3;
  const double inside = time(Pattern::all_reduce, small, 8, 8);
  const double send = time(Pattern::send_recv, small / 8, 2, 1);
  const double sum = time(Pattern::all_reduce, small, 16, 8);
  EXPECT_GT(sum, inside + send);
  EXPECT_LT(sum, inside + 2 * send);
  EXPECT_LT(time(Pattern::reduce_scatter, small, 16, 8), sum);
  const double large = 4e9;
  const double slower = std::max(time(Pattern::all_reduce, large, 8, 8),
                                 2 * 15.0 / 16 * time(Pattern::send_recv, large / 8, 2, 1));
  EXPECT_GE(time(Pattern::all_reduce, large, 16, 8), slower);
  EXPECT_LT(time(Pattern::all_reduce, large, 16, 8), 1.02 * slower);
}

// A gather of many nodes waits for its ring; a sum has a tree, up and down.
TEST(BetweenNodes, GathersGoRoundAllNodes) {
  const Calibration fit = by_hand();
  const Fabric fabric = two_nodes();
  const auto time = [&](Pattern pattern, std::int64_t ranks) {
    return collective_time(call(pattern, 1e3, ranks), fabric, toys::gpu(), &fit).total();
  };
  for (const std::int64_t nodes : {25, 50, 100}) {
    EXPECT_GE(time(Pattern::all_gather, 4 * nodes), fabric.scale_out.latency * double(nodes - 1));
    EXPECT_GE(time(Pattern::reduce_scatter, 4 * nodes),
              fabric.scale_out.latency * double(nodes - 1));
    const double levels = std::log2(double(nodes));
    EXPECT_GE(time(Pattern::all_reduce, 4 * nodes), fabric.scale_out.latency * (2 * levels));
    EXPECT_LT(time(Pattern::all_reduce, 4 * nodes), fabric.scale_out.latency * (2 * levels + 2));
  }
}

TEST(BetweenNodes, ASlowLinkInsideTheNodesBoundsTheWhole) {
  const Calibration fit = by_hand();
  Fabric fabric = two_nodes();
  fabric.scale_up.bandwidth = BytesPerSecond{1e9};
  const CollectiveTime time =
      collective_time(call(Pattern::all_reduce, 4e9), fabric, toys::gpu(), &fit);
  // A reduce-scatter and an all-gather of three quarters of the message.
  EXPECT_GE(time.total().value, 2 * 3.0);
}

TEST(BetweenNodes, ACallMaySayHowManyOfItsRanksShareANode) {
  const Calibration fit = by_hand();
  Collective alone = call(Pattern::all_reduce, 1e9, 2);
  alone.per_node = 1;
  const CollectiveTime time = collective_time(alone, two_nodes(), toys::gpu(), &fit);
  EXPECT_NEAR(time.transfer.value, 1e9 / (0.8 * 10e9), 1e-9);
}

// Laws, with the parameters that ship: physical, and monotone in message and link.
TEST(BetweenNodes, NoCollectiveBeatsItsAdapters) {
  const Device device = toys::gpu();
  Device hopper = device;
  hopper.architecture = "Hopper";
  Fabric faster = two_nodes();
  faster.scale_out.bandwidth = BytesPerSecond{20e9};
  for (const Pattern pattern : {Pattern::all_reduce, Pattern::all_gather, Pattern::reduce_scatter,
                                Pattern::all_to_all, Pattern::send_recv}) {
    for (const std::int64_t ranks : {8, 16, 64}) {
      double before = 0;
      for (double bytes = 256; bytes < 1e10; bytes *= 2) {
        const Collective op = call(pattern, bytes, ranks);
        const CollectiveTime time = collective_time(op, two_nodes(), hopper, &toys::transfer());
        const double nodes = double(ranks) / 4;
        const double crossing = (nodes - 1) / nodes * bytes / 4 / 10e9;
        EXPECT_EQ(time.tier, Tier::transfer);
        EXPECT_GE(time.total().value, crossing) << bytes;
        EXPECT_GE(time.total().value, before) << bytes;
        EXPECT_LE(collective_time(op, faster, hopper, &toys::transfer()).total(), time.total());
        before = time.total().value;
      }
    }
  }
}

}  // namespace
}  // namespace engine
