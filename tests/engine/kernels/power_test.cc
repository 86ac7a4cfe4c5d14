#include "engine/kernels/power.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/calibrations.h"
#include "tests/support/random_calls.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

KernelTime sustained(KernelTime kernel, const Op& op, const Device& device) {
  sustain(kernel, op, device);
  return kernel;
}

// Draws 60% of its limit when busy, and as much again with all matrix units at work.
Device limited() {
  Device device = toys::gpu();
  device.power_limit = Watts{500};
  device.busy_power = Watts{300};
  device.tensor_power = Watts{300};
  device.memory_power = Watts{50};
  return device;
}

constexpr Gemm kLarge{.m = 8192, .n = 12800, .k = 8192};
constexpr Gemm kNarrow{.m = 16, .n = 12800, .k = 8192};

KernelTime time_of(const Op& op, const Device& device) {
  return kernel_time(Family::gemm, op, device, nullptr);
}

// At 1/s of the clock it takes s times as long and draws 1/s of the energy, which is 1.2 times the stated one at the full clock.
TEST(Power, AProductAtThePeakRunsAtTheClockAtWhichItDrawsTheLimit) {
  const Device device = limited();
  const KernelTime burst = time_of(kLarge, device);
  const double arithmetic = 2.0 * 8192 * 12800 * 8192 / 1e15;
  ASSERT_NEAR(burst.compute.value, arithmetic, 1e-9);  // tiles and waves are full
  const double traffic = 50 * burst.bytes.value / 1e12;
  const double time = sustained(burst, kLarge, device).time.value, slower = time / arithmetic;
  EXPECT_GT(slower, 1.1);
  EXPECT_NEAR(1.2 * (300 + 300) * arithmetic / slower + traffic, 500 * time, 1e-9 * 500 * time);
}

// Power goes as the square of the clock, whoever lowers it: the limit, or who sets the clock (serving.clock).
TEST(Power, AQuarterOfTheLimitIsHalfOfTheClock) {
  Device device = limited();
  device.memory_power = Watts{0};
  const KernelTime burst = time_of(kLarge, device);
  const double before = sustained(burst, kLarge, device).time.value;
  for (const double share : {0.7, 0.5, 0.25}) {
    device.power_limit = Watts{500 * share};
    EXPECT_NEAR(sustained(burst, kLarge, device).time.value / before, 1 / std::sqrt(share), 1e-9);
  }
}

// A millisecond of arithmetic. The limit leaves it half of the clock: whoever sets the device to more gets no more, and to less that.
// Without a limit it draws by the square of its clock above its rest.
TEST(Power, TheLimitPicksAClockWhateverTheDeviceIsSetTo) {
  Device device = limited();
  device.idle_power = Watts{40};
  device.rated_clock = device.clock;
  KernelTime rated;
  rated.time = rated.compute = Seconds{1e-3};
  rated.flops = Flops{1e12};
  const auto at = [&](double clock, double watts) {
    Device set = device;
    set.clock = device.clock * clock;
    set.power_limit = Watts{watts};
    KernelTime kernel = rated;
    kernel.time = kernel.compute = rated.time / clock;
    const Joules drawn = sustain(kernel, kLarge, set, &rated);
    return std::pair{kernel.time.value, (drawn / kernel.time).value};
  };
  const double full = 1.2 * (300 + 300), quarter = full / 4;
  for (const double clock : {2.0, 1.5, 1.0, 0.75, 0.5}) {
    EXPECT_NEAR(at(clock, quarter).first, 2e-3, 1e-12) << clock;
    EXPECT_NEAR(at(clock, quarter).second, quarter, 1e-9) << clock;
  }
  EXPECT_NEAR(at(0.25, quarter).first, 4e-3, 1e-12);
  for (const double clock : {2.0, 1.0, 0.5, 0.25}) {
    EXPECT_NEAR(at(clock, 10000).first, 1e-3 / clock, 1e-12) << clock;
    EXPECT_NEAR(at(clock, 10000).second, 40 + (full - 40) * clock * clock, 1e-9) << clock;
  }
}

TEST(Power, WhatWaitsForMemoryIsNotSlower) {
  const KernelTime burst = time_of(kNarrow, limited());
  ASSERT_EQ(burst.bound(), Bound::memory);
  EXPECT_EQ(sustained(burst, kNarrow, limited()).time, burst.time);
}

// A copy of 1 GB through a cache of twice the memory's bandwidth. Half of the clock is enough for it, at which it draws 40 W at rest,
// a quarter of the 260 W above that, and 50 W for memory: 155 W. Below that cache and memory slow down as well: at a clock of x, of
// 1 where the cache is at its peak, 40 + 260 x^2 + 50 * 2 x W are drawn.
TEST(Power, WaitingForMemoryIsFreeOnlyWhileTheCacheKeepsUpWithIt) {
  Device device = limited();
  device.idle_power = Watts{40};
  device.memory_bandwidth = BytesPerSecond{1e12};
  device.l2_bandwidth = BytesPerSecond{2e12};
  const Op copy = Elementwise{.cold_bytes = 1e9};
  KernelTime burst;
  burst.time = burst.memory = Seconds{1e-3};
  burst.bytes = Bytes{1e9};
  burst.saved[Bound::memory] = burst.time;
  for (const double watts : {500.0, 300.0, 155.0}) {
    device.power_limit = Watts{watts};
    EXPECT_DOUBLE_EQ(sustained(burst, copy, device).time.value, 1e-3) << watts;
  }
  for (const double x : {0.4, 0.2, 0.1, 0.01}) {
    device.power_limit = Watts{40 + 260 * x * x + 50 * 2 * x};
    KernelTime slow = burst;
    const Joules drawn = sustain(slow, copy, device);
    EXPECT_NEAR(slow.time.value, 0.5e-3 / x, 1e-9 * slow.time.value) << x;
    EXPECT_DOUBLE_EQ(drawn.value, (device.power_limit * slow.time).value);
    EXPECT_EQ(slow.bound(), Bound::memory);
  }
}

// As the limit falls to what the board draws at rest, whatever it does takes longer without end, and draws what it may.
TEST(Power, AtRestNothingIsLeftForWork) {
  Device device = limited();
  device.idle_power = Watts{40};
  device.l2_bandwidth = BytesPerSecond{3e12};
  for (const Gemm& product : {kLarge, kNarrow}) {
    const KernelTime burst = time_of(product, device);
    double before = burst.time.value;
    for (double watts = 600; watts > 40.1; watts = 40 + (watts - 40) * 0.7) {
      device.power_limit = Watts{watts};
      KernelTime kernel = burst;
      const double drawn = sustain(kernel, product, device) / kernel.time / Watts{1};
      EXPECT_GE(kernel.time.value, before * (1 - 1e-12)) << watts;
      EXPECT_LE(drawn, watts * (1 + 1e-12));
      EXPECT_GE(drawn, 40 - 1e-9);
      before = kernel.time.value;
    }
    EXPECT_GT(before, 100 * burst.time.value);
  }
}

TEST(Power, ADeviceThatDoesNotSayWhatItDrawsIsNeverLimited) {
  Device device = limited();
  device.tensor_power = Watts{0};
  const KernelTime burst = time_of(kLarge, device);
  EXPECT_EQ(sustained(burst, kLarge, device).time, burst.time);
  device = limited();
  device.power_limit = Watts{0};
  EXPECT_EQ(sustained(burst, kLarge, device).time, burst.time);
}

TEST(Power, EnergyIsWhatThePartsDrawAndNeverMoreThanTheLimit) {
  Device device = limited();
  device.idle_power = Watts{40};
  KernelTime large = time_of(kLarge, device);
  const Joules at_the_limit = sustain(large, kLarge, device);
  EXPECT_DOUBLE_EQ(at_the_limit.value, 500 * large.time.value);
  KernelTime narrow = time_of(kNarrow, device);
  const Joules waiting = sustain(narrow, kNarrow, device);
  const double arithmetic = narrow.compute.value, peak = narrow.flops.value / 1e15;
  EXPECT_DOUBLE_EQ(waiting.value, 1.2 * (300 * arithmetic + 300 * peak) +
                                      50 * narrow.bytes.value / 1e12 +
                                      300 * (narrow.time.value - arithmetic));
  EXPECT_EQ(power_at_rest(device).value, 40);
}

// Kernels that wait for memory, repeated without rest on an H200 (specs/calibration/h200-sxm/kernel_details.csv.gz): they drew 552 to
// 686 W at the full clock.
TEST(Power, KernelsThatWaitForMemoryDrawWhatBusyDevicesDraw) {
  Device device = toys::gpu();
  device.memory_bandwidth = BytesPerSecond{4.8e12};
  device.peak.bf16 = FlopsPerSecond{989e12};
  device.power_limit = Watts{700};
  device.busy_power = Watts{460};
  device.tensor_power = Watts{450};
  device.memory_power = Watts{100};
  struct Measured {
    double bytes, seconds, flops, watts;
  };
  for (const Measured row : {Measured{2.0 * 8192 * 8192, 33e-6, 2.0 * 16 * 8192 * 8192, 598},
                             Measured{2.0 * 28672 * 4096, 56e-6, 2.0 * 16 * 28672 * 4096, 605},
                             Measured{96 * 1024 * 4096.0, 98e-6, 96 * 1024 * 16384.0, 630},
                             Measured{96 * 4096 * 4096.0, 360e-6, 96 * 4096 * 16384.0, 674}}) {
    KernelTime kernel;
    kernel.time = Seconds{row.seconds};
    kernel.bytes = Bytes{row.bytes};
    kernel.flops = Flops{row.flops};
    kernel.compute = Seconds{row.flops / 989e12};
    const double drawn = sustain(kernel, kNarrow, device).value / row.seconds;
    EXPECT_NEAR(drawn / row.watts, 1, 0.2) << row.seconds;
  }
}

TEST(Power, ADeviceThatDoesNotSayWhatItDrawsHasNoEnergy) {
  Device device = limited();
  device.idle_power = Watts{40};
  device.tensor_power = Watts{0};
  KernelTime large = time_of(kLarge, device);
  EXPECT_EQ(sustain(large, kLarge, device).value, 0);
  EXPECT_EQ(power_at_rest(device).value, 0);
}

// A sweep over any of these fields must not see a better device lose, nor more work win.
TEST(Power, NeitherABetterDeviceIsSlowerNorMoreWorkFaster) {
  const auto scaled = [](Device device, auto member) {
    device.*member = device.*member * 1.3;
    return device;
  };
  for (const Calibration* calibration :
       {static_cast<const Calibration*>(nullptr), &toys::transfer()}) {
    for (std::uint64_t n = 0; n < 2000; ++n) {
      const toys::Call call = toys::random_call(n);
      const auto time = [&](const Op& op, const Device& device) {
        const KernelTime burst = kernel_time(call.family, op, device, calibration);
        const Seconds unbroken = sustained(burst, op, device).time;
        EXPECT_GE(unbroken, burst.time);
        return unbroken.value;
      };
      Device device = toys::random_device(n);
      device.power_limit = Watts{500};
      device.busy_power = Watts{300};
      device.tensor_power = Watts{300};
      device.memory_power = Watts{50};
      const double before = time(call.op, device) * (1 + 1e-9);
      EXPECT_LE(time(call.op, scaled(device, &Device::power_limit)), before) << n;
      EXPECT_LE(time(call.op, scaled(device, &Device::memory_bandwidth)), before) << n;
      EXPECT_LE(time(call.op, scaled(device, &Device::clock)), before) << n;
      for (const toys::Growth& grown : toys::growths(call.op)) {
        EXPECT_GE(time(grown(call.op, 1.5), device) * (1 + 1e-9), time(call.op, device)) << n;
      }
    }
  }
}

}  // namespace
}  // namespace engine
