#include "engine/kernels/power.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/support/calibrations.h"
#include "tests/support/random_calls.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// A kernel of the roofline or of a calibration at another clock.
class Again final : public Reclocked {
 public:
  explicit Again(const Op& op, Family family = Family::gemm,
                 const Calibration* calibration = nullptr)
      : op_(op), family_(family), calibration_(calibration) {}
  KernelTime on(const Device& slower) const override {
    return kernel_time(family_, op_, slower, calibration_);
  }

 private:
  Op op_;
  Family family_;
  const Calibration* calibration_;
};

// One whose arithmetic follows the clock, and whose traffic does not.
class Simple final : public Reclocked {
 public:
  explicit Simple(const KernelTime& rated) : rated_(rated) {}
  KernelTime on(const Device& slower) const override {
    KernelTime kernel = rated_;
    kernel.compute = rated_.compute / slower.on_chip_scale();
    kernel.time = std::max(kernel.compute, kernel.memory);
    return kernel;
  }

 private:
  KernelTime rated_;
};

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

struct Unbroken {
  KernelTime kernel;
  Sustained sustained;
  Watts power() const { return sustained.energy / kernel.time; }
};
Unbroken unbroken(const Op& op, const Device& device) {
  Unbroken result{time_of(op, device), {}};
  result.sustained = sustain(result.kernel, Again(op), op, device);
  return result;
}

// What a limit costs is what the clock costs that it leaves: there is one way from a clock to a time.
TEST(Power, TimeUnderALimitIsTheTimeAtTheClockThatItLeaves) {
  int slower = 0;
  for (const Calibration* calibration :
       {static_cast<const Calibration*>(nullptr), &toys::transfer()}) {
    for (std::uint64_t n = 0; n < 1000; ++n) {
      const toys::Call call = toys::random_call(n);
      Device device = toys::random_device(n);
      device.rated_clock = device.clock;
      device.idle_power = Watts{40};
      device.busy_power = Watts{300};
      device.tensor_power = Watts{300};
      device.memory_power = Watts{50};
      device.power_limit = Watts{100};
      const Again again(call.op, call.family, calibration);
      KernelTime kernel = again.on(device);
      const Sustained held = sustain(kernel, again, call.op, device);
      Device set = device;
      set.clock = device.rated_clock * held.clock;
      set.power_limit = Watts{1e6};
      KernelTime at_that_clock = again.on(set);
      const Sustained free = sustain(at_that_clock, again, call.op, set);
      EXPECT_NEAR(kernel.time / at_that_clock.time, 1, 1e-9) << n;
      EXPECT_NEAR(held.energy / free.energy, 1, 1e-9) << n;
      if (held.clock < 1) {
        EXPECT_NEAR((held.energy / kernel.time).value, 100, 1e-6) << n;
        ++slower;
      }
    }
  }
  EXPECT_GT(slower, 1000);
}

TEST(Power, ALowerLimitIsNeverFaster) {
  for (std::uint64_t n = 0; n < 300; ++n) {
    const toys::Call call = toys::random_call(n);
    Device device = toys::random_device(n);
    device.idle_power = Watts{40};
    device.busy_power = Watts{300};
    device.tensor_power = Watts{300};
    device.memory_power = Watts{50};
    const Again again(call.op, call.family, &toys::transfer());
    double before = 0;
    for (double watts = 700; watts > 41; watts = 40 + (watts - 40) * 0.9) {
      device.power_limit = Watts{watts};
      KernelTime kernel = again.on(device);
      sustain(kernel, again, call.op, device);
      EXPECT_GE(kernel.time.value, before * (1 - 1e-9)) << n << " " << watts;
      before = kernel.time.value;
    }
  }
}

// All of it is arithmetic, at the peak: power goes as the square of the clock, whoever lowers it.
TEST(Power, AQuarterOfTheLimitIsHalfOfTheClock) {
  Device device = limited();
  device.memory_power = Watts{0};
  device.power_limit = Watts{600};
  const double full = unbroken(kLarge, device).kernel.time.value;
  ASSERT_NEAR(full, 2.0 * 8192 * 12800 * 8192 / 1e15, 0.01 * full);  // tiles and waves are full
  for (const double share : {0.7, 0.5, 0.25}) {
    device.power_limit = Watts{600 * share};
    const Unbroken held = unbroken(kLarge, device);
    EXPECT_NEAR(held.sustained.clock, std::sqrt(share), 0.005);
    EXPECT_NEAR(held.kernel.time.value / full, 1 / std::sqrt(share), 0.005 / share);
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
    const Simple again(rated);
    KernelTime kernel = again.on(set);
    const Sustained held = sustain(kernel, again, kLarge, set);
    return std::pair{kernel.time.value, (held.energy / kernel.time).value};
  };
  const double full = 300 + 300, half = 40 + (full - 40) / 4;
  for (const double clock : {2.0, 1.5, 1.0, 0.75, 0.5}) {
    EXPECT_NEAR(at(clock, half).first, 2e-3, 1e-12) << clock;
    EXPECT_NEAR(at(clock, half).second, half, 1e-6) << clock;
  }
  EXPECT_NEAR(at(0.25, half).first, 4e-3, 1e-12);
  for (const double clock : {2.0, 1.0, 0.5, 0.25}) {
    EXPECT_NEAR(at(clock, 10000).first, 1e-3 / clock, 1e-12) << clock;
    EXPECT_NEAR(at(clock, 10000).second, 40 + (full - 40) * clock * clock, 1e-6) << clock;
  }
}

// A copy of 1 GB through a cache of twice the memory's bandwidth. Half of the clock is enough for it, at which it draws 40 W at rest,
// and a quarter of the 310 W above that: 117.5 W.
TEST(Power, WaitingForMemoryIsFreeOnlyWhileTheCacheKeepsUpWithIt) {
  Device device = limited();
  device.idle_power = Watts{40};
  device.l2_bandwidth = BytesPerSecond{2e12};
  device.launch_latency = Seconds{0};
  const Op copy = Elementwise{.cold_bytes = 1e9};
  const Again again(copy, Family::residual);
  const auto held_to = [&](double watts) {
    device.power_limit = Watts{watts};
    KernelTime kernel = again.on(device);
    const Sustained held = sustain(kernel, again, copy, device);
    return std::pair{kernel, held};
  };
  for (const double watts : {500.0, 300.0, 117.5}) {
    EXPECT_NEAR(held_to(watts).first.time.value, 1e-3, 1e-9) << watts;
  }
  double before = 1e-3;
  for (const double watts : {110.0, 80.0, 60.0, 45.0}) {
    const auto [kernel, held] = held_to(watts);
    EXPECT_GE(kernel.time.value, before * (1 - 1e-9)) << watts;
    EXPECT_NEAR((held.energy / kernel.time).value, watts, 1e-6);
    before = kernel.time.value;
  }
}

// As the limit falls to what the board draws at rest, whatever it does takes longer, and draws what it may.
TEST(Power, AtRestNothingIsLeftForWork) {
  Device device = limited();
  device.idle_power = Watts{40};
  device.l2_bandwidth = BytesPerSecond{3e12};
  for (const Gemm& product : {kLarge, kNarrow}) {
    const KernelTime burst = time_of(product, device);
    double before = burst.time.value;
    for (double watts = 600; watts > 40.01; watts = 40 + (watts - 40) * 0.7) {
      device.power_limit = Watts{watts};
      const Unbroken held = unbroken(product, device);
      EXPECT_GE(held.kernel.time.value, before * (1 - 1e-9)) << watts;
      EXPECT_LE(held.power().value, watts * (1 + 1e-9));
      EXPECT_GE(held.power().value, 40 - 1e-9);
      before = held.kernel.time.value;
    }
    EXPECT_GT(before, 3 * burst.time.value);
  }
}

TEST(Power, ADeviceThatDoesNotSayWhatItDrawsIsNeverLimitedAndHasNoEnergy) {
  for (const bool draws : {false, true}) {
    Device device = limited();
    (draws ? device.power_limit : device.tensor_power) = Watts{0};
    const Unbroken free = unbroken(kLarge, device);
    EXPECT_EQ(free.kernel.time, time_of(kLarge, device).time);
    EXPECT_EQ(free.sustained.energy.value, 0);
    EXPECT_EQ(power_at_rest(device).value, 0);
  }
}

TEST(Power, EnergyIsWhatThePartsDrawAndNeverMoreThanTheLimit) {
  Device device = limited();
  device.idle_power = Watts{40};
  const Unbroken large = unbroken(kLarge, device);
  EXPECT_NEAR(large.sustained.energy / (device.power_limit * large.kernel.time), 1, 1e-9);
  const Unbroken narrow = unbroken(kNarrow, device);
  EXPECT_NEAR(narrow.sustained.energy.value,
              300 * narrow.kernel.time.value + 300 * narrow.kernel.flops.value / 1e15 +
                  50 * narrow.kernel.bytes.value / 1e12,
              1e-9 * narrow.sustained.energy.value);
  EXPECT_EQ(power_at_rest(device).value, 40);
}

// Kernels that wait for memory, repeated without rest on an H200 (specs/calibration/h200-sxm/kernel_details.csv.gz): they drew 552 to
// 674 W at the full clock.
TEST(Power, KernelsThatWaitForMemoryDrawWhatAnH200Drew) {
  const Device device = toys::shipped("devices", "h200-sxm").device;
  struct Measured {
    double bytes, seconds, flops, watts;
  };
  for (const Measured row : {Measured{2.0 * 8192 * 8192, 33e-6, 2.0 * 16 * 8192 * 8192, 598},
                             Measured{2.0 * 28672 * 4096, 56e-6, 2.0 * 16 * 28672 * 4096, 605},
                             Measured{2 * 268435456.0, 128e-6, 0, 552},
                             Measured{96 * 1024 * 4096.0, 98e-6, 96 * 1024 * 16384.0, 630},
                             Measured{96 * 4096 * 4096.0, 360e-6, 96 * 4096 * 16384.0, 674}}) {
    KernelTime kernel;
    kernel.time = kernel.memory = Seconds{row.seconds};
    kernel.bytes = Bytes{row.bytes};
    kernel.flops = Flops{row.flops};
    const double drawn = drawn_by(kernel, kNarrow, device).total().value / row.seconds;
    EXPECT_NEAR(drawn / row.watts, 1, 0.2) << row.seconds;
  }
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
        const Again again(op, call.family, calibration);
        const KernelTime burst = again.on(device);
        KernelTime unbroken = burst;
        sustain(unbroken, again, op, device);
        EXPECT_GE(unbroken.time.value, burst.time.value * (1 - 1e-12));
        return unbroken.time.value;
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
