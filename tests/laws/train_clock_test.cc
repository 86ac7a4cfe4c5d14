// Kernels of a pass run at one clock, at which the board's limit allows what they draw together; and no device that can do more
// trains longer, whatever the strategy and whichever of its stages has most to do.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/evaluate.h"
#include "engine/kernels/power.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario step_of(const char* model, const char* device) {
  Scenario scenario = toys::shipped("models", model);
  scenario.task = Task::train;
  scenario.device = toys::shipped("devices", device).device;
  scenario.device.memory_capacity = Bytes{1e14};
  scenario.host = toys::no_host();
  scenario.calibration.tier = TierChoice::transfer;
  scenario.train = {.sequence = 4096, .micro_batch = 1, .global_batch = 4};
  return scenario;
}

struct Drawn {
  Seconds time;
  Joules energy;
};
std::map<Phase, Drawn> drawn_by_phase(const Outcome& outcome) {
  std::map<Phase, Drawn> sums;
  for (const KernelRow& row : outcome.kernels) {
    sums[row.phase].time += row.work.exposed();
    sums[row.phase].energy += row.work.energy;
  }
  return sums;
}

TEST(PassClock, HoldsWhatAPassDrawsToTheLimit) {
  Scenario scenario = step_of("llama-3.1-8b", "h200-sxm");
  Seconds before;
  for (const double watts : {2000.0, 700.0, 550.0, 400.0}) {
    scenario.device.power_limit = Watts{watts};
    const Outcome outcome = evaluate(scenario, toys::transfer_resources());
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    for (const auto& [phase, drawn] : drawn_by_phase(outcome)) {
      // Nothing but arithmetic gets longer, so memory's share of the power remains.
      if (phase == Phase::optimizer) continue;
      EXPECT_LE(drawn.energy.value, watts * drawn.time.value * (1 + 1e-9)) << watts;
      // As fast as that allows.
      if (watts < 700) {
        EXPECT_NEAR(drawn.energy / drawn.time / Watts{watts}, 1, 1e-9) << watts;
      }
    }
    EXPECT_GE(outcome.metrics.iteration_time, before) << watts;
    before = outcome.metrics.iteration_time;
  }
}

// A product that alone would exceed the limit runs at the full clock among passes that draw less.
TEST(PassClock, CountsForAllKernelsTogether) {
  const Device device = toys::shipped("devices", "h200-sxm").device;
  const ClockedWork product{.arithmetic = Seconds{1}, .energy = device.power_limit * Seconds{1.1}};
  EXPECT_GT(clock_slowdown(product, device), 1.04);
  ClockedWork beside = product;
  beside.at_rest = Seconds{1};
  EXPECT_EQ(clock_slowdown(beside, device), 1);
  // Where the clock falls, time times the limit is what is drawn.
  ClockedWork mixed = product;
  mixed.other = Seconds{0.1};
  mixed.energy += device.busy_power * mixed.other;
  const double slower = clock_slowdown(mixed, device);
  ASSERT_GT(slower, 1);
  const Seconds time = mixed.arithmetic * slower + mixed.other;
  const Joules drawn = mixed.energy / slower;
  EXPECT_NEAR(drawn / (device.power_limit * time), 1, 1e-12);
}

// A strategy drawn at random; many do not work.
class Strategies {
 public:
  template <class Choice, std::size_t count>
  Choice one_of(const std::array<Choice, count>& choices) {
    return choices[draw_() % count];
  }
  Scenario next() {
    static constexpr std::array devices = {"h100-sxm", "h200-sxm", "a100-80gb-sxm", "mi300x",
                                           "h100-pcie"};
    static constexpr std::array models = {"llama-3.1-8b", "deepseek-v2-lite", "qwen3-30b-a3b",
                                          "gemma-2-9b"};
    Scenario scenario = step_of(one_of(models), one_of(devices));
    scenario.parallel = {.tp = one_of(kDegrees), .pp = one_of(kDegrees), .dp = one_of(kDegrees)};
    if (scenario.model.moe.experts > 0) scenario.parallel.ep = one_of(kDegrees);
    TrainSettings& train = scenario.train;
    train.sequence = one_of(std::array{512, 1024, 4096});
    train.micro_batch = one_of(std::array{1, 2});
    train.global_batch = train.micro_batch * scenario.parallel.dp * one_of(std::array{1, 4, 12});
    train.schedule = one_of(std::array{Schedule::one_f_one_b, Schedule::interleaved,
                                       Schedule::zero_bubble, Schedule::gpipe});
    if (train.schedule == Schedule::interleaved) train.virtual_stages = 2;
    train.recompute = one_of(std::array{Recompute::none, Recompute::full, Recompute::attention});
    train.zero = one_of(std::array{0, 1, 2, 3});
    train.sequence_parallel = scenario.parallel.tp > 1;
    train.tp_overlap = train.sequence_parallel && coin();
    train.batch_overlap = scenario.parallel.ep > 1 && coin();
    train.fused_gradients = coin();
    return scenario;
  }

 private:
  static constexpr std::array<std::int64_t, 3> kDegrees = {1, 2, 4};
  bool coin() { return draw_() % 2 == 0; }
  std::mt19937 draw_{11};
};

TEST(PassClock, NoDeviceThatCanDoMoreTrainsLonger) {
  struct Better {
    const char* what;
    void (*make)(Device& device);
  };
  const std::array better = {
      Better{"clock", [](Device& device) { device.clock = device.clock * 1.2; }},
      Better{"clock twice", [](Device& device) { device.clock = device.clock * 2; }},
      Better{"bandwidth",
             [](Device& device) { device.memory_bandwidth = device.memory_bandwidth * 1.5; }},
      Better{"power", [](Device& device) { device.power_limit = device.power_limit * 1.3; }}};
  Strategies strategies;
  int tried = 0;
  for (int i = 0; i < 500; ++i) {
    const Scenario scenario = strategies.next();
    const Outcome outcome = evaluate(scenario, toys::transfer_resources());
    if (outcome.status != Status::ok) continue;
    ++tried;
    for (const Better& way : better) {
      Scenario other = scenario;
      way.make(other.device);
      const Metrics metrics = evaluate(other, toys::transfer_resources()).metrics;
      EXPECT_LE(metrics.iteration_time.value, outcome.metrics.iteration_time.value * (1 + 1e-9))
          << i << " " << way.what << " " << scenario.model.name << " on " << scenario.device.name;
    }
  }
  EXPECT_GT(tried, 250);
}

}  // namespace
}  // namespace engine
