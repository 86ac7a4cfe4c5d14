#include "engine/calibration/device_facts.h"

#include <gtest/gtest.h>

#include "engine/calibration/calibrations.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr auto kOwn = static_cast<std::size_t>(ParameterSet::own);

Calibration swept_gpu() {
  Calibration calibration;
  calibration.name = "toy";
  calibration.tier = Tier::measured;
  auto& set = calibration.gemm[0][kOwn];
  set.present = true;
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
  const auto& set = other->gemm[0][kOwn];
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

}  // namespace
}  // namespace engine
