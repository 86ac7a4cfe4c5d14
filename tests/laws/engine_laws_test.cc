// Laws of what rows of an engine are predicted with. It follows the rules of an engine's kernels, which are not
// monotone in the shape, as measurements are not; in the device it is, and physics holds.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/kernels/kernel_time.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"
#include "tests/support/random_calls.h"

namespace engine {
namespace {

using toys::Call;
using toys::Draw;
using toys::growths;
using toys::random_call;
using toys::random_device;
using toys::random_prompt;

constexpr std::uint64_t kDraws = 1000;

// What ships, each completed by the shared parameters.
const std::vector<Calibration>& engines() {
  static const std::vector<Calibration> all = [] {
    std::vector<Calibration> read;
    for (const auto& file :
         std::filesystem::directory_iterator(paths::source("tools/calibrate/engine_rows"))) {
      auto one = parse_calibration(toys::file_text(file.path()), file.path());
      if (!one) ADD_FAILURE() << to_text(one.mistakes());
      if (one) read.push_back(completed_by(std::move(one).value(), toys::transfer()));
    }
    return read;
  }();
  return all;
}

// A shape of every family, on a device of a generation that engines were measured on.
struct Case {
  Device device;
  Call call;
};

Case random_case(std::uint64_t n) {
  Draw draw(n + 11);
  Device device = random_device(n);
  device.architecture = draw.pick<const char*>("Ampere", "Hopper", "Blackwell");
  if (n % 4 != 0) return {device, random_call(n)};
  const Family family = draw.pick(Family::attn_prefill, Family::mla_prefill);
  return {device, {family, random_prompt(draw, family).op()}};
}

TEST(EngineLaws, NoCallBeatsPhysics) {
  ASSERT_FALSE(engines().empty());
  for (const Calibration& engine : engines()) {
    for (std::uint64_t n = 0; n < kDraws; ++n) {
      const auto [device, call] = random_case(n);
      const KernelTime time = kernel_time(call.family, call.op, device, &engine);
      EXPECT_TRUE(std::isfinite(time.total().value)) << engine.name << " draw " << n;
      EXPECT_GE(time.total().value, time.least.value * (1 - 1e-12)) << engine.name << " draw " << n;
      EXPECT_LE(time.low, 1) << engine.name << " draw " << n;
      EXPECT_GE(time.high, 1) << engine.name << " draw " << n;
    }
  }
}

TEST(EngineLaws, ABetterDeviceIsNeverSlower) {
  const std::array<void (*)(Device&), 4> better{
      [](Device& d) { d.memory_bandwidth *= 1.4; }, [](Device& d) { d.l2_capacity *= 1.5; },
      [](Device& d) { d.clock *= 1.2; }, [](Device& d) { d.launch_latency *= 0.7; }};
  for (const Calibration& engine : engines()) {
    for (std::uint64_t n = 0; n < kDraws; ++n) {
      const auto [device, call] = random_case(n);
      const double before = kernel_time(call.family, call.op, device, &engine).total().value;
      for (std::size_t i = 0; i < better.size(); ++i) {
        Device improved = device;
        better[i](improved);
        EXPECT_LE(kernel_time(call.family, call.op, improved, &engine).total().value,
                  before * (1 + 1e-9))
            << engine.name << " draw " << n << " change " << i;
      }
    }
  }
}

TEST(EngineLaws, DecodeIsContinuousInTheContext) {
  for (const Calibration& engine : engines()) {
    for (std::uint64_t n = 0; n < kDraws; ++n) {
      const auto [device, call] = random_case(n);
      if (!std::holds_alternative<AttentionDecode>(call.op)) continue;
      const double before = kernel_time(call.family, call.op, device, &engine).total().value;
      const Op longer = growths(call.op)[0](call.op, 1 + 1e-7);
      const double after = kernel_time(call.family, longer, device, &engine).total().value;
      EXPECT_NEAR(after / before, 1, 1e-5) << engine.name << " draw " << n;
    }
  }
}

}  // namespace
}  // namespace engine
