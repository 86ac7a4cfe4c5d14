// What was measured on a device holds for that device: whoever alters a field that a kernel's time depends on is told that it is not
// measured any more.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/calibration/calibrations.h"
#include "engine/kernels/kernel_time.h"
#include "engine/leaves/leaves.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

struct Timed {
  Family family;
  Op op;
};

// One of each kind that the H200's sweep has, bound by arithmetic, by memory and by their start.
std::vector<Timed> calls() {
  std::vector<Timed> all;
  for (const std::int64_t m : {1, 64, 4096}) {
    all.push_back({Family::gemm, Gemm{.m = m, .n = 6144, .k = 4096}});
    all.push_back({Family::gemm, Gemm{.m = m,
                                      .n = 6144,
                                      .k = 4096,
                                      .weights = Dtype::fp8,
                                      .activations = Dtype::fp8,
                                      .group = 1 << 20}});
  }
  all.push_back({Family::attn_decode, AttentionDecode{.sequences = 32,
                                                      .kv_tokens = 32 * 4096,
                                                      .heads = 32,
                                                      .kv_heads = 8,
                                                      .key_dim = 128,
                                                      .value_dim = 128}});
  all.push_back({Family::norm, Elementwise{.rows = 512,
                                           .resident_bytes = 512 * 4096 * 8,
                                           .cold_bytes = 0,
                                           .flops = 512 * 4096 * 4}});
  all.push_back({Family::copy, Copy{.bytes = 1e8, .path = CopyPath::host_to_device}});
  return all;
}

const Calibration* chosen(const Device& device) {
  return choose_calibration({}, device, toys::shipped_resources().calibrations).calibration;
}

// Another value of the same kind that a device may have; false: this leaf has none.
bool alter(Scenario& scenario, const Leaf& leaf) {
  switch (leaf.kind) {
    case LeafKind::quantity:
    case LeafKind::number: {
      const double now = leaf_as_double(scenario, leaf);
      set_leaf(scenario, leaf, std::min(leaf.range.high, now > 0 ? now * 0.75 : 1.0));
      return true;
    }
    case LeafKind::integer:
      set_leaf(scenario, leaf, std::int64_t(leaf_as_double(scenario, leaf)) + 64);
      return true;
    case LeafKind::boolean:
      set_leaf(scenario, leaf, leaf_as_double(scenario, leaf) == 0);
      return true;
    case LeafKind::enumeration:
      set_leaf(
          scenario, leaf,
          (std::int64_t(leaf_as_double(scenario, leaf)) + 1) % std::int64_t(leaf.names.size()));
      return true;
    case LeafKind::text:
      set_leaf(scenario, leaf, std::string("Ampere"));
      return true;
  }
  return false;
}

TEST(SameDeviceLaws, WhatMovesAKernelIsNotMeasuredAnyMore) {
  const Scenario base = toys::shipped("devices", "h200-sxm");
  const Calibration* const measured = chosen(base.device);
  ASSERT_NE(measured, nullptr);
  ASSERT_EQ(measured->tier, Tier::measured);
  int moved_by = 0;
  for (const Leaf& leaf : leaf_table().leaves) {
    if (!leaf.path.starts_with("device.")) continue;
    Scenario other = base;
    if (!alter(other, leaf)) continue;
    bool moved = false;
    for (const auto& [family, op] : calls()) {
      const Seconds before = kernel_time(family, op, base.device, measured).time;
      // As if it were still the measured one, and as a rooflines' device.
      moved = moved || kernel_time(family, op, other.device, measured).time != before ||
              kernel_time(family, op, other.device, nullptr).time !=
                  kernel_time(family, op, base.device, nullptr).time;
    }
    if (!moved) continue;
    ++moved_by;
    for (const auto& [family, op] : calls()) {
      const KernelTime time = kernel_time(family, op, other.device, chosen(other.device));
      EXPECT_NE(time.tier, Tier::measured) << leaf.path << " " << name_of(family);
    }
  }
  EXPECT_GE(moved_by, 10);
}

// Prices, names, room and power are no figures of a kernel in a burst, which is what a sweep measures.
TEST(SameDeviceLaws, WhatMovesNoKernelLeavesItMeasured) {
  const Scenario base = toys::shipped("devices", "h200-sxm");
  for (const char* path : {"device.name", "device.vendor", "device.rent", "device.purchase",
                           "device.memory_capacity", "device.power_limit", "device.idle_power"}) {
    Scenario other = base;
    ASSERT_TRUE(alter(other, leaf_at(leaf_table().find_leaf(path)))) << path;
    EXPECT_EQ(chosen(other.device), chosen(base.device)) << path;
  }
}

}  // namespace
}  // namespace engine
