// A link's latency is an axis like others: what a microsecond of it adds to a collective is what messages spend on the way, no more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/comm/collective_time.h"
#include "engine/comm/sends.h"
#include "engine/kernels/copy.h"
#include "tests/support/calibrations.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

constexpr Pattern kPatterns[] = {Pattern::all_reduce, Pattern::all_gather, Pattern::reduce_scatter,
                                 Pattern::all_to_all, Pattern::send_recv};
constexpr const char* kDevices[] = {"a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "mi300x"};

// Links that a message crosses one after the other, at most: around a ring, and twice around it to sum. Engines' own kernels wait for a
// flag and read, there and back, twice.
double most_inside(Pattern pattern, double ranks) {
  if (pattern == Pattern::send_recv || pattern == Pattern::all_to_all) return 1;
  return pattern == Pattern::all_reduce ? std::max(6.0, 2 * (ranks - 1)) : ranks - 1;
}

// Sums go up and down a tree of nodes; gathers and scatters around a ring.
double most_between(Pattern pattern, double nodes) {
  if (pattern == Pattern::send_recv || pattern == Pattern::all_to_all) return 1;
  return pattern == Pattern::all_reduce ? 2 * std::log2(nodes) : nodes - 1;
}

// How often a latency counts that one of the fabric's links has more.
double times_added(const Collective& op, const Fabric& fabric, const Device& device,
                   LinkRates Fabric::*link, Seconds more) {
  Fabric slow = fabric;
  (slow.*link).latency += more;
  const auto time = [&](const Fabric& on) {
    return collective_time(op, on, device, &toys::transfer()).total();
  };
  return (time(slow) - time(fabric)) / more;
}

Fabric eight_per_node(const Device& device) {
  Fabric fabric = fabric_of(Cluster{}, device);
  fabric.devices_per_node = 8;
  fabric.scale_out = {.topology = Topology::fabric,
                      .bandwidth = BytesPerSecond{50e9},
                      .latency = Seconds{2.5e-6},
                      .devices = 4096};
  return fabric;
}

TEST(LinkLatency, InsideANodeItCountsAsOftenAsAMessageCrossesALink) {
  for (const char* name : kDevices) {
    const Device device = toys::shipped("devices", name).device;
    for (const Pattern pattern : kPatterns) {
      for (const std::int64_t ranks : {2, 4, 8}) {
        for (const double bytes : {1e3, 16e3, 1e6, 64e6}) {
          if (pattern == Pattern::send_recv && ranks > 2) continue;
          for (const Seconds more : {Seconds{0.2e-6}, Seconds{1e-6}, Seconds{20e-6}}) {
            const Collective op{.pattern = pattern, .bytes = bytes, .ranks = ranks};
            const double times =
                times_added(op, eight_per_node(device), device, &Fabric::scale_up, more);
            const std::string where = std::string(name) + " pattern " +
                                      std::to_string(int(pattern)) + " of " +
                                      std::to_string(ranks) + ", bytes " + std::to_string(bytes);
            EXPECT_GE(times, 0) << where;
            EXPECT_LE(times, most_inside(pattern, double(ranks)) * (1 + 1e-6)) << where;
          }
        }
      }
    }
  }
}

TEST(LinkLatency, BetweenNodesItCountsAsOftenAsAMessageCrossesTheNetwork) {
  for (const char* name : kDevices) {
    const Device device = toys::shipped("devices", name).device;
    for (const Pattern pattern : kPatterns) {
      for (const std::int64_t nodes : {2, 4, 32}) {
        for (const double bytes : {16e3, 1e6, 64e6}) {
          if (pattern == Pattern::send_recv && nodes > 2) continue;
          const std::int64_t ranks = pattern == Pattern::send_recv ? 2 : 8 * nodes;
          const Collective op{.pattern = pattern,
                              .bytes = bytes,
                              .ranks = ranks,
                              .stride = pattern == Pattern::send_recv ? 8 : 1};
          const double times =
              times_added(op, eight_per_node(device), device, &Fabric::scale_out, Seconds{10e-6});
          const std::string where = std::string(name) + " pattern " + std::to_string(int(pattern)) +
                                    " nodes " + std::to_string(nodes) + ", bytes " +
                                    std::to_string(bytes);
          EXPECT_GE(times, 0) << where;
          EXPECT_LE(times, most_between(pattern, double(nodes)) * (1 + 1e-6)) << where;
        }
      }
    }
  }
}

// Copies go straight to their experts, or meet, are told of, received and forwarded.
TEST(LinkLatency, AnExchangeOfExpertsCrossesItsLinksAFewTimes) {
  using Exchange = ExpertExchange;
  const Device device = toys::shipped("devices", "h100-sxm").device;
  const auto crossings = [&](std::int64_t ranks, LinkRates Fabric::*link, Exchange::Kernels kernels,
                             Exchange::Way way) {
    const Exchange op{.way = way,
                      .tokens = 1,
                      .hidden = 7168,
                      .top_k = 8,
                      .experts = 256,
                      .ranks = ranks,
                      .kernels = kernels};
    Fabric near = eight_per_node(device), far = near;
    (far.*link).latency += Seconds{10e-6};
    const auto time = [&](const Fabric& fabric) {
      return exchange_time(op, fabric, device, &toys::transfer()).total();
    };
    return (time(far) - time(near)) / Seconds{10e-6};
  };
  const auto many = Exchange::Kernels::normal, few = Exchange::Kernels::low_latency;
  for (const auto way : {Exchange::Way::dispatch, Exchange::Way::combine}) {
    EXPECT_NEAR(crossings(32, &Fabric::scale_out, few, way), 1, 0.02);
    EXPECT_NEAR(crossings(8, &Fabric::scale_up, few, way), 1, 0.02);
    EXPECT_EQ(crossings(8, &Fabric::scale_out, few, way), 0);
  }
  EXPECT_NEAR(crossings(32, &Fabric::scale_out, many, Exchange::Way::dispatch), 7, 0.01);
  EXPECT_NEAR(crossings(32, &Fabric::scale_out, many, Exchange::Way::combine), 4, 0.01);
  EXPECT_NEAR(crossings(8, &Fabric::scale_up, many, Exchange::Way::dispatch), 4, 0.01);
  EXPECT_NEAR(crossings(8, &Fabric::scale_up, many, Exchange::Way::combine), 3, 0.01);
}

TEST(LinkLatency, ACopyIsNotThereBeforeItHasCrossedItsLink) {
  for (const char* name : kDevices) {
    Device device = toys::shipped("devices", name).device;
    double before = 0;
    for (const double latency : {0.0, 1e-6, 2e-6, 5e-6, 100e-6}) {
      device.host_link.latency = Seconds{latency};
      const LinkRates link = fabric_of(Cluster{}, device).host_link;
      const double start = copies_over(link, device, &toys::transfer()).start.value;
      EXPECT_GE(start, std::max(latency, before) * (1 - 1e-12)) << name;
      before = start;
      for (const CopyPath path : {CopyPath::host_to_device, CopyPath::device_to_host}) {
        const Copy one{.bytes = 1, .path = path};
        EXPECT_GE(copy_time(one, device, &toys::transfer()).total().value, latency * (1 - 1e-12))
            << name;
      }
    }
  }
}

// Nor is what is sent, however long the way is that fits of short ones are applied to.
TEST(LinkLatency, NothingThatIsSentIsThereBeforeItHasCrossedItsLink) {
  for (const char* name : kDevices) {
    const Device device = toys::shipped("devices", name).device;
    for (const Reach reach : {Reach::inside_node, Reach::between_nodes}) {
      double before = 0;
      for (const double latency : {1e-6, 1e-5, 1e-3, 10e-3, 50e-3, 0.2, 1.0}) {
        LinkRates link = fabric_of(Cluster{}, device).scale_up;
        link.latency = Seconds{latency};
        const double start = sends_over({link, reach}, device, &toys::transfer()).line.start.value;
        EXPECT_GE(start, std::max(latency, before)) << name << " " << latency;
        EXPECT_LE(start, latency + 1e-3) << name << " " << latency;
        before = start;
      }
    }
  }
}

// The kernel, its flags and the library take their time over the fastest link, too.
TEST(LinkLatency, ANetworkWithoutLatencyLeavesWhatMachinesTake) {
  const Device device = toys::shipped("devices", "h100-sxm").device;
  Fabric fabric = eight_per_node(device);
  const Collective sum{.pattern = Pattern::all_reduce, .bytes = 16e3, .ranks = 16};
  const auto time = [&](double latency) {
    fabric.scale_out.latency = Seconds{latency};
    return collective_time(sum, fabric, device, &toys::transfer()).total().value;
  };
  const double all = time(2.5e-6), free = time(0);
  EXPECT_NEAR(all - free, 2 * 2.5e-6, 1e-6) << "once up and once down";
  EXPECT_GT(free, 0.8 * all);
}

}  // namespace
}  // namespace engine
