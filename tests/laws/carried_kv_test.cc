// KV caches that go from one deployment to another: at the rate of sends, which were measured, and never at more than the links
// have.
#include <gtest/gtest.h>

#include "engine/tasks/handover.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

struct Ends {
  Scenario scenario;
  Deployed from, to;

  Ends(const Device& device, const Calibration* calibration) {
    scenario = toys::scenario();
    scenario.device = device;
    for (Deployed* end : {&from, &to}) {
      end->spec = &scenario;
      end->fabric = fabric_of({}, device);
      end->shard = shard_of(scenario.model, scenario.parallel, scenario.quant);
      end->calibration = calibration;
    }
  }
  Ends(const Ends&) = delete;

  // Bytes a second that a device sends, where `devices` are in either deployment; 0: nothing is carried.
  double rate(double devices) const {
    constexpr double tokens = 1000;
    Handover handover;
    const HandoverWay way{scenario.transfer, from, devices, to, devices, tokens};
    if (carry_of(way, handover)) return 0;
    const Carry& carry = handover.carry;
    EXPECT_DOUBLE_EQ(carry.token.sent, carry.token.received);
    return kv_bytes(from.shard, tokens).value / tokens / carry.token.sent;
  }
};

TEST(CarriedKv, ReachesWhatLargeSendsReachOfTheLinks) {
  constexpr double many = 1e4;  // more devices than any node has
  for (const Device& device : toys::shipped_devices()) {
    const Ends measured(device, &toys::transfer()), stated(device, nullptr);
    for (const double devices : {1.0, many}) {
      const double rate = measured.rate(devices), link = stated.rate(devices);
      if (link <= 0) continue;
      EXPECT_LE(rate, link * (1 + 1e-12)) << device.name << " " << devices;
      EXPECT_GT(rate, 0.4 * link) << device.name << " " << devices;
    }
    // By the data sheet there is nothing but the link.
    if (stated.from.fabric.scale_out.bandwidth.value > 0) {
      EXPECT_NEAR(stated.rate(many) / stated.from.fabric.scale_out.bandwidth.value, 1, 1e-9)
          << device.name;
    }
  }
}

// Whoever goes on with a KV cache has to get it: together devices send as much as all that take it keep, and nobody sends more than that.
TEST(CarriedKv, WhatSeveralKeepIsSentToEach) {
  struct Split {
    const char* model;
    std::int64_t from, to;  // tensor-parallel devices
    double copies;          // that one of those who have read sends of its part
  };
  // Eight KV heads; latents, which heads share.
  for (const Split& split : {Split{"llama-3.1-70b", 4, 4, 1}, Split{"llama-3.1-70b", 8, 2, 1},
                             Split{"llama-3.1-70b", 2, 8, 1}, Split{"llama-3.1-70b", 4, 16, 2},
                             Split{"llama-3.1-70b", 16, 16, 1}, Split{"deepseek-v3", 1, 8, 8},
                             Split{"deepseek-v3", 8, 8, 1}, Split{"deepseek-v3", 2, 16, 8},
                             Split{"deepseek-v3", 16, 1, 1}}) {
    Ends ends(toys::shipped("devices", "h100-sxm").device, nullptr);
    const ModelSpec model = toys::shipped("models", split.model).model;
    const auto shard = [&](std::int64_t tp) {
      return shard_of(model, {.tp = tp}, ends.scenario.quant);
    };
    ends.from.shard = shard(split.from);
    ends.to.shard = shard(split.to);
    constexpr double tokens = 1000, many = 1e4;
    Handover handover;
    ASSERT_FALSE(
        carry_of({ends.scenario.transfer, ends.from, many, ends.to, many, tokens}, handover));
    const Carry& carry = handover.carry;
    const double own = kv_bytes(ends.from.shard, tokens) / kv_bytes(ends.to.shard, tokens);
    EXPECT_NEAR(carry.token.sent / carry.token.received, split.copies * own, 1e-9)
        << split.model << " " << split.from << " " << split.to;
    EXPECT_GE(double(split.from) * carry.token.sent,
              double(split.to) * carry.token.received * (1 - 1e-9));
  }
}

// NCCL sent 64 MiB between two H100s of a node at 348 of 450 GB/s.
TEST(CarriedKv, InsideANodeIsAsFastAsSendsThere) {
  const Ends ends(toys::shipped("devices", "h100-sxm").device, &toys::transfer());
  EXPECT_NEAR(ends.rate(1) / 450e9, 0.77, 0.06);
}

// Whoever names the network that is there anyway gets the same from it; one that is twice as fast carries twice as much.
TEST(CarriedKv, TheLinkThatIsThereIsTheSameByName) {
  for (const char* name : {"a100-80gb-sxm", "h100-sxm", "b200-sxm", "mi300x"}) {
    Ends ends(toys::shipped("devices", name).device, &toys::transfer());
    constexpr double many = 1e4;
    const double unnamed = ends.rate(many);
    ends.scenario.transfer.link = ends.scenario.device.scale_out;
    EXPECT_NEAR(ends.rate(many) / unnamed, 1, 1e-9) << name;
    ends.scenario.transfer.link.bandwidth = ends.scenario.transfer.link.bandwidth * 2;
    EXPECT_NEAR(ends.rate(many) / unnamed, 2, 0.05) << name;
  }
}

}  // namespace
}  // namespace engine
