#include "engine/calibration/device_facts.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/calibration/calibrations.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Calibration swept_gpu() {
  Calibration calibration;
  calibration.name = "toy";
  calibration.tier = Tier::measured;
  auto& set = calibration.gemm[0].edit(ParameterSet::own);
  set.tier = Tier::measured;
  set.low = 0.97;
  set.high = 1.03;
  calibration.measured_on = toys::gpu();
  return calibration;
}

TEST(DeviceFacts, AreWrittenAndReadBack) {
  const auto read = parse_calibration(write_calibration(swept_gpu()), "toy.calibration");
  ASSERT_TRUE(read) << to_text(read.mistakes());
  ASSERT_TRUE(read->measured_on);
  EXPECT_TRUE(same_kernels(*read->measured_on, toys::gpu()));
  EXPECT_TRUE(same_links(*read->measured_on, toys::gpu()));
}

// Once one line said what matrix units do in 32 bits, whichever those were.
TEST(DeviceFacts, OlderTextsSayTf32UnderFp32) {
  Calibration swept = swept_gpu();
  Device& on = *swept.measured_on;
  on.vector_peak = FlopsPerSecond{6e13};
  on.peak.fp32 = FlopsPerSecond{5e14};
  const auto today = parse_calibration(write_calibration(swept), "toy.calibration");
  ASSERT_TRUE(today) << to_text(today.mistakes());
  EXPECT_EQ(today->measured_on->peak.fp32.value, 5e14);
  EXPECT_EQ(today->measured_on->peak.tf32.value, 0);
  tell_tf32_apart(on);
  EXPECT_EQ(on.peak.fp32.value, 6e13);
  EXPECT_EQ(on.peak.tf32.value, 5e14);
  // Vector units say the same twice.
  on.peak = {.fp32 = FlopsPerSecond{6e13}};
  tell_tf32_apart(on);
  EXPECT_EQ(on.peak.fp32.value, 6e13);
  EXPECT_EQ(on.peak.tf32.value, 0);
}

TEST(DeviceFacts, WhatIsNoFactIsRefused) {
  Device device;
  EXPECT_TRUE(set_fact(device, "peak.bf16", "1e15"));
  EXPECT_EQ(device.peak.bf16.value, 1e15);
  EXPECT_FALSE(set_fact(device, "peak.bf16", "fast"));
  EXPECT_FALSE(set_fact(device, "rent", "1"));
  EXPECT_FALSE(set_fact(device, "flux", "1"));
}

TEST(DeviceFacts, AnAlteredDeviceIsNotTheMeasuredOne) {
  const Calibration swept = completed_by(swept_gpu(), toys::transfer());
  EXPECT_EQ(speaking_for(swept, toys::gpu()), &swept);
  Device cheaper = toys::gpu();
  cheaper.rent = DollarsPerSecond{0};
  cheaper.memory_capacity = Bytes{1e9};
  EXPECT_EQ(speaking_for(swept, cheaper), &swept);
  Device altered = toys::gpu();
  altered.memory_bandwidth = altered.memory_bandwidth * 2;
  const Calibration* other = speaking_for(swept, altered);
  ASSERT_NE(other, &swept);
  const auto& set = *other->gemm[0].find(ParameterSet::own);
  EXPECT_EQ(set.tier, Tier::transfer);
  EXPECT_FALSE(set.envelope.contains(coordinates(1, 1, 1, 1, 0)));
  EXPECT_LT(set.low, 0.97);
  EXPECT_GT(set.high, 1.03);
}

TEST(DeviceFacts, OlderSweepsDoNotSayAndAreTakenAtTheirWord) {
  Calibration older = swept_gpu();
  older.measured_on.reset();
  Device altered = toys::gpu();
  altered.memory_bandwidth = altered.memory_bandwidth * 2;
  EXPECT_EQ(speaking_for(older, altered), &older);
}

TEST(DeviceFacts, ACalibrationFollowsWhatTheDeviceIsAndNotItsName) {
  Calibrations have;
  have.by_name["transfer"] = std::make_shared<Calibration>(toys::transfer());
  have.by_name["swept"] =
      std::make_shared<Calibration>(completed_by(swept_gpu(), toys::transfer()));
  const Calibration* swept = have.find("swept");
  const auto chosen = [&have](const Device& device) {
    return choose_calibration({}, device, have).calibration;
  };
  for (const char* name : {"toy", "swept", "transfer", "mine", ""}) {
    Device device = toys::gpu();
    device.name = name;
    EXPECT_EQ(chosen(device), swept) << name;
    // Another machine, whatever it is called.
    device.memory_bandwidth = device.memory_bandwidth * 2;
    EXPECT_EQ(chosen(device), have.find("transfer")) << name;
    // Made from the swept one, it keeps what was learned there.
    device.measured_as = "swept";
    EXPECT_EQ(chosen(device), swept->altered.get()) << name;
    EXPECT_TRUE(choose_calibration({TierChoice::measured, "nobody"}, device, have).missing);
  }
}

}  // namespace
}  // namespace engine
