// What altered chips draw, asked for as users do: powers follow the parts that draw them, and what is stated holds.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space.h"
#include "tests/support/paths.h"

namespace {

struct Asked {
  engine::Scenario scenario;
  engine::Outcome outcome;

  double seconds() const { return outcome.metrics.step_time.value; }
  double joules() const {
    double sum = 0;
    for (const engine::KernelRow& row : outcome.kernels) sum += row.work.energy.value;
    return sum;
  }
  double watts() const { return joules() / seconds(); }
};

// Points of a sweep over steps of an 8B model on an H200 without a limit to speak of.
std::vector<Asked> asked(const std::string& device, const std::string& rest = "",
                         const std::string& step = "{phase: prefill, batch: 4, prompt: 2048}") {
  const std::string text = fmt::format(
      "base: {{task: step, host: none, model: llama-3.1-8b, step: {}, device: {{from: "
      "h200-sxm{}}}}}\n"
      "{}",
      step, device, rest);
  const sweep::Library library({paths::specs("")});
  const auto spec = sweep::read_sweep_text(text, paths::specs("chips.yaml"), library);
  if (!spec) {
    ADD_FAILURE() << text << engine::to_text(spec.mistakes());
    return {};
  }
  std::vector<Asked> all;
  sweep::PointBuilder builder(spec->space);
  for (std::uint64_t i = 0; i < spec->space.size(); ++i) {
    sweep::Point point;
    EXPECT_EQ(builder.build(i, point), sweep::Admission::admitted) << text;
    all.push_back({point.scenario, engine::evaluate(point.scenario, *spec->resources)});
    EXPECT_EQ(all.back().outcome.status, engine::Status::ok) << all.back().outcome.reason;
  }
  return all;
}

const std::string kFree = ", power_limit: 20 kW";

TEST(ChipEnergy, MoreMultiprocessorsNeverDrawLessAtFullWork) {
  const auto chips = asked(kFree, "axes: [device.multiprocessors: [33, 66, 132, 264, 528]]\n");
  for (std::size_t i = 1; i < chips.size(); ++i) {
    EXPECT_GT(chips[i].watts(), chips[i - 1].watts()) << i;
    EXPECT_LT(chips[i].seconds(), chips[i - 1].seconds()) << i;
  }
}

// Joules of the same prompt, but for what the board draws at rest meanwhile.
TEST(ChipEnergy, TheSameWorkTakesAboutTheSameEnergy) {
  const auto above_rest = [](const Asked& chip) {
    return chip.joules() - chip.scenario.device.idle_power.value * chip.seconds();
  };
  const double before = above_rest(asked(kFree).front());
  for (const char* change :
       {", multiprocessors: 33", ", multiprocessors: 66", ", multiprocessors: 264",
        ", multiprocessors: 528", ", memory_bandwidth: 2.4 TB/s", ", memory_bandwidth: 9.6 TB/s",
        ", peak.bf16: 2000 TFLOP/s", ", multiprocessors: 66, memory_bandwidth: 2.4 TB/s"}) {
    EXPECT_NEAR(above_rest(asked(kFree + change).front()) / before, 1, 0.15) << change;
  }
}

TEST(ChipEnergy, AFinerProcessDrawsLessForIt) {
  const Asked before = asked(kFree).front(), finer = asked(kFree + ", energy_scale: 0.7").front();
  EXPECT_EQ(finer.seconds(), before.seconds());
  EXPECT_EQ(finer.scenario.device.memory_power, before.scenario.device.memory_power);
  EXPECT_NEAR(finer.scenario.device.tensor_power / before.scenario.device.tensor_power, 0.7, 1e-12);
  EXPECT_LT(finer.watts(), before.watts());
  EXPECT_GT(finer.watts(), 0.69 * before.watts());
}

// Wherever it is stated: beside `from`, on an axis, drawn, or computed.
TEST(ChipEnergy, AStatedPowerIsNeverOverridden) {
  using engine::Watts;
  const std::string wide = ", multiprocessors: 528";
  const engine::Device shipped = asked("").front().scenario.device;
  const engine::Device followed = asked(wide).front().scenario.device;
  EXPECT_GT(followed.idle_power, shipped.idle_power);
  EXPECT_GT(followed.busy_power, shipped.busy_power);
  EXPECT_NEAR(followed.tensor_power / shipped.tensor_power, 4, 1e-12);
  EXPECT_EQ(followed.memory_power, shipped.memory_power);
  const auto stated = [](Watts power) { return fmt::format("{} W", power.value); };
  // The value of the file, stated, is stated, too.
  for (const Watts power : {shipped.tensor_power, Watts{333}}) {
    const engine::Device beside =
        asked(wide + ", tensor_power: " + stated(power)).front().scenario.device;
    EXPECT_EQ(beside.tensor_power, power);
    EXPECT_NEAR((beside.busy_power - beside.idle_power).value,
                (followed.busy_power - followed.idle_power).value, 1e-9);
    const auto on_an_axis =
        asked(wide, "axes: [device.tensor_power: [" + stated(power) + ", 50 W]]\n");
    EXPECT_EQ(on_an_axis.front().scenario.device.tensor_power, power);
    EXPECT_EQ(on_an_axis.back().scenario.device.tensor_power, Watts{50});
  }
  const auto drawn =
      asked(wide, "axes: [{sample: {sobol: 4, of: {device.idle_power: [60 W, 61 W]}}}]\n");
  for (const Asked& point : drawn) {
    EXPECT_NEAR(point.scenario.device.idle_power.value, 60.5, 0.5);
    EXPECT_GT(point.scenario.device.busy_power, point.scenario.device.idle_power);
  }
  const auto computed = asked(wide, "derive: {device.memory_power: \"2 * device.memory_power\"}\n");
  EXPECT_EQ(computed.front().scenario.device.memory_power, shipped.memory_power * 2);
  EXPECT_EQ(asked(", tensor_power: 0 W").front().joules(), 0);
}

TEST(ChipEnergy, ATableOfAnAlteredChipSaysWhatItsPowersAre) {
  const std::string text =
      "base: {task: step, model: llama-3.1-8b, device: h200-sxm}\n"
      "axes: [device.multiprocessors: [132, 528]]\n";
  const auto spec =
      sweep::read_sweep_text(text, paths::specs("chips.yaml"), sweep::Library({paths::specs("")}));
  ASSERT_TRUE(spec);
  for (const char* path : {"device.idle_power", "device.busy_power", "device.tensor_power"}) {
    const auto& varied = spec->space.varied_leaves();
    EXPECT_NE(std::ranges::find(varied, engine::leaf_table().find_leaf(path)), varied.end())
        << path;
  }
}

// A step's limit leaves each kernel a clock; the device set to the one at which the whole step draws the limit takes about as long.
TEST(ChipEnergy, ALimitAndTheClockThatItLeavesCostTheSame) {
  for (const char* step :
       {"{phase: prefill, batch: 4, prompt: 2048}", "{phase: decode, batch: 256, context: 1024}",
        "{phase: decode, batch: 64, context: 4096}"}) {
    for (const double watts : {600.0, 450.0, 302.0}) {
      const double held =
          asked(fmt::format(", power_limit: {} W", watts), "", step).front().seconds();
      double low = 0.05, high = 1;
      const auto set_to = [&](double clock) {
        return asked(kFree + fmt::format(", clock: {} GHz", 1.83 * clock), "", step).front();
      };
      for (int i = 0; i < 20; ++i) {
        const double middle = (low + high) / 2;
        (set_to(middle).watts() > watts ? high : low) = middle;
      }
      EXPECT_NEAR(held / set_to(low).seconds(), 1, 0.05) << step << " " << watts;
    }
  }
}

// Of the same processor, the board that may draw more is no slower, and faster where both are held to their limits.
TEST(ChipEnergy, BoardsOfOneProcessorDifferByTheirLimits) {
  const auto time_on = [](const std::string& device) {
    const std::string text = fmt::format(
        "base: {{task: train, model: llama-3.1-8b, device: {}, parallel: {{tp: 1, dp: 8}}, quant: "
        "{{weights: bf16, activations: bf16}}, train: {{sequence: 8192, micro_batch: 1, "
        "global_batch: 32, zero: 2}}}}\n",
        device);
    const auto spec = sweep::read_sweep_text(text, paths::specs("boards.yaml"),
                                             sweep::Library({paths::specs("")}));
    EXPECT_TRUE(spec);
    sweep::PointBuilder builder(spec->space);
    sweep::Point point;
    builder.build(0, point);
    EXPECT_TRUE(point.scenario.device.power_assumed);
    return engine::evaluate(point.scenario, *spec->resources).metrics.iteration_time.value;
  };
  EXPECT_GT(time_on("mi300x") / time_on("mi325x"), 1);
  EXPECT_GT(time_on("{from: mi300x, power_limit: 500 W}") / time_on("mi300x"), 1.1);
}

// What somebody states is no guess any more, in any way of stating it; what he does not state still is.
TEST(ChipEnergy, WhatIsStatedIsNoLongerAssumed) {
  const auto device = [](const std::string& stated, const std::string& rest = "") {
    const auto spec = sweep::read_sweep_text(
        "base: {task: step, host: none, model: llama-3.1-8b, device: {from: gaudi-3" + stated +
            "}}\n" + rest,
        paths::specs("chips.yaml"), sweep::Library({paths::specs("")}));
    EXPECT_TRUE(spec);
    sweep::PointBuilder builder(spec->space);
    sweep::Point point;
    builder.build(0, point);
    return point.scenario.device;
  };
  EXPECT_TRUE(device("").rent_assumed && device("").power_assumed);
  EXPECT_FALSE(device(", rent: 2 USD/h").rent_assumed);
  EXPECT_TRUE(device(", rent: 2 USD/h").power_assumed);
  EXPECT_FALSE(device(", memory_power: 200 W").power_assumed);
  EXPECT_TRUE(device(", memory_power: 200 W").rent_assumed);
  EXPECT_TRUE(device(", idle_power: 200 W").power_assumed);  // that of boards is listed
  EXPECT_FALSE(device("", "axes: [device.rent: [1 USD/h, 2 USD/h]]\n").rent_assumed);
  EXPECT_FALSE(device("", "derive: {device.tensor_power: device.power_limit / 2}\n").power_assumed);
}

// Without what the limit adds, kernels take what they take without a limit.
TEST(ChipEnergy, RowsSayWhatThePowerLimitAdds) {
  const auto limited = asked("").front(), free = asked(", power_limit: unlimited").front();
  double added = 0;
  for (const engine::KernelRow& row : limited.outcome.kernels) added += row.work.limited.value;
  EXPECT_GT(added, 0.02 * limited.seconds());
  EXPECT_NEAR(limited.seconds() - added, free.seconds(), 1e-9 * free.seconds());
  for (const engine::KernelRow& row : free.outcome.kernels) EXPECT_EQ(row.work.limited.value, 0);
}

}  // namespace
