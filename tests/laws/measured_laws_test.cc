// Laws of the measured tier, for every family over random shapes. Measurements are not monotone
// themselves: instead, the tier is exact at them, physical everywhere, and continuous where the shape is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "tests/support/calibrations.h"
#include "tests/support/random_calls.h"
#include "tools/calibrate/fit/tree_fit.h"

namespace engine {
namespace {

using toys::Call;
using toys::Draw;
using toys::growths;
using toys::random_call;
using toys::random_device;
using toys::random_prompt;

constexpr std::uint64_t kSwept = 4000;

Device swept_device() { return random_device(3); }

// The calls of the sweep: every family, prompts among them.
Call swept_call(std::uint64_t n) {
  if (n % 8 != 0) return random_call(n + 50'000);
  Draw draw(n + 50'000);
  const Family family = draw.pick(Family::attn_prefill, Family::mla_prefill);
  return {family, random_prompt(draw, family).op()};
}

struct Section {
  OwnSlot slot;
  std::vector<MeasuredPoint> points;
};

// Calls take 0.7 to 1.5 times what the forms say, by a rule with a wave and a step, and some noise.
// Points say so, and trees where the family has features.
const Calibration& sweep() {
  static const Calibration calibration = [] {
    Calibration made = toys::transfer();
    std::map<std::string, Section> sections;
    for (std::uint64_t n = 0; n < kSwept; ++n) {
      const Call call = swept_call(n);
      const OwnSlot slot = own_slot(made, call.family, call.op, swept_device());
      if (slot.facts == nullptr) continue;
      const Coordinates shape = coordinates_of(call.family, call.op);
      const double residual = 0.2 * std::sin(std::log(shape.value[0])) +
                              (shape.value[1] > 1000 ? 0.15 : -0.15) +
                              0.1 * uniform(5, Stream::sampling, n);
      sections[slot.section].slot = slot;
      sections[slot.section].points.push_back({shape, residual});
    }
    const double processors = double(swept_device().multiprocessors);
    for (auto& [name, section] : sections) {
      const CoordinateList list = section.slot.coordinates;
      auto trees = tools::fit_trees(section.points, list.features, processors, {.trees = 20});
      section.slot.facts->points = PointSet(section.points, list, std::move(trees));
    }
    return made;
  }();
  return calibration;
}

double seconds(const Call& call, const Calibration& calibration) {
  return kernel_time(call.family, call.op, swept_device(), &calibration).total().value;
}

std::string name(const Call& call, std::uint64_t n) {
  return std::string(name_of(call.family)) + " draw " + std::to_string(n);
}

TEST(MeasuredLaws, NoCallBeatsPhysics) {
  for (std::uint64_t n = 0; n < 6000; ++n) {
    const Call call = n < kSwept ? swept_call(n) : random_call(n);
    const KernelTime time = kernel_time(call.family, call.op, swept_device(), &sweep());
    ASSERT_TRUE(std::isfinite(time.total().value)) << name(call, n);
    EXPECT_GT(time.total().value, 0) << name(call, n);
    EXPECT_GE(time.total().value, time.least.value * (1 - 1e-12)) << name(call, n);
    for (const Seconds part : {time.compute, time.memory, time.l2, time.launch}) {
      EXPECT_GE(part.value, 0) << name(call, n);
      EXPECT_LE(part.value, time.total().value * (1 + 1e-9)) << name(call, n);
    }
  }
}

TEST(MeasuredLaws, MeasuredCallsReturnExactly) {
  Calibration base = toys::transfer();  // the same sets without points: what ratios are of
  Calibration with_points = sweep();
  std::set<std::string> sections, with_trees;
  for (std::uint64_t n = 0; n < kSwept; ++n) {
    const Call call = swept_call(n);
    const OwnSlot slot = own_slot(base, call.family, call.op, swept_device());
    if (slot.facts == nullptr) continue;
    const PointSet& swept =
        own_slot(with_points, call.family, call.op, swept_device()).facts->points;
    sections.insert(slot.section);
    if (!swept.trees().empty()) with_trees.insert(slot.section);
    const Coordinates shape = coordinates_of(call.family, call.op);
    const auto point = std::ranges::find_if(
        swept.points(), [&](const MeasuredPoint& one) { return one.shape.value == shape.value; });
    ASSERT_NE(point, swept.points().end());
    const KernelTime time = kernel_time(call.family, call.op, swept_device(), &sweep());
    EXPECT_EQ(time.tier, Tier::measured);
    const double measured = seconds(call, base) * std::exp(point->residual);
    EXPECT_NEAR(time.total().value / std::max(time.least.value, measured), 1, 1e-9)
        << name(call, n);
  }
  EXPECT_GE(sections.size(), 25u);
  EXPECT_GE(with_trees.size(), 6u);
}

TEST(MeasuredLaws, TimeIsContinuousWhereTheShapeIs) {
  // At measured calls, where lines have their knots, and between them.
  for (std::uint64_t n = 0; n < 6000; ++n) {
    const Call call = n < kSwept ? swept_call(n) : random_call(n);
    const bool smooth = std::holds_alternative<Elementwise>(call.op) ||
                        std::holds_alternative<AttentionDecode>(call.op) ||
                        std::holds_alternative<Copy>(call.op);
    if (!smooth) continue;
    const Call beside{call.family, growths(call.op)[0](call.op, 1 + 1e-9)};
    EXPECT_NEAR(seconds(beside, sweep()) / seconds(call, sweep()), 1, 1e-5) << name(call, n);
  }
}

// No kernel sees a window that is longer than all there is to attend to.
TEST(MeasuredLaws, AWindowThatCutsNothingMovesNothing) {
  int compared = 0;
  for (std::uint64_t n = 0; n < 4000; ++n) {
    const Call plain = random_call(n);
    Call windowed = plain;
    double keys = 0;
    if (auto* op = std::get_if<AttentionPrefill>(&windowed.op); op != nullptr && op->window == 0) {
      keys = op->kv_tokens / double(op->sequences);
      op->window = std::int64_t(keys) + 2;
    }
    if (auto* op = std::get_if<AttentionDecode>(&windowed.op); op != nullptr && op->window == 0) {
      keys = op->kv_tokens / double(op->sequences);
      op->window = std::int64_t(keys) + 2;
    }
    if (keys <= 0) continue;
    ++compared;
    for (const Calibration* calibration : {&sweep(), &toys::transfer()}) {
      EXPECT_EQ(seconds(windowed, *calibration), seconds(plain, *calibration)) << name(plain, n);
    }
  }
  EXPECT_GT(compared, 200);
}

// A swept device with another memory is no longer what was measured, and must still be physical.
TEST(MeasuredLaws, AlteredDevicesAreFlaggedAndNeverSlowerForMore) {
  Calibration swept = sweep();
  swept.measured_on = swept_device();
  const Calibration both = completed_by(std::move(swept), toys::transfer());
  ASSERT_NE(both.altered, nullptr);
  const auto time_on = [&](const Device& device, const Call& call) {
    return kernel_time(call.family, call.op, device, both.altered.get());
  };
  Device wider = swept_device(), faster = swept_device();
  wider.memory_bandwidth = wider.memory_bandwidth * 1.7;
  faster.clock = faster.clock * 1.3;
  for (std::uint64_t n = 0; n < 4000; ++n) {
    const Call call = n < 2000 ? swept_call(n) : random_call(n);
    const KernelTime before = time_on(swept_device(), call);
    for (const Device& device : {wider, faster}) {
      const KernelTime after = time_on(device, call);
      EXPECT_LE(after.total().value, before.total().value * (1 + 1e-12)) << name(call, n);
      EXPECT_GE(after.total().value, after.least.value * (1 - 1e-12)) << name(call, n);
      EXPECT_NE(after.tier, Tier::measured) << name(call, n);
      EXPECT_TRUE(after.extrapolated || after.tier == Tier::roofline) << name(call, n);
    }
  }
}

}  // namespace
}  // namespace engine
