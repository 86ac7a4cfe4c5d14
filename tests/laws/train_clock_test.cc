// Kernels of a pass run at one clock, at which the board's limit allows what they draw together; and no device that can do more
// trains longer, whatever the strategy and whichever of its stages has most to do.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "engine/evaluate.h"
#include "engine/kernels/power.h"
#include "tests/support/shipped.h"
#include "tests/support/strategies.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

using toys::step_of;

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
  const Watts above_rest = device.power_limit * 1.1 - device.idle_power;
  const ClockedWork product{
      .time = Seconds{1}, .clocked = Seconds{1}, .products = above_rest * Seconds{1}};
  EXPECT_GT(clock_slowdown(product, device), 1.04);
  ClockedWork beside = product;
  beside.at_rest = Seconds{1};
  EXPECT_EQ(clock_slowdown(beside, device), 1);
  // Where the clock falls, time times the limit is what is drawn: half of it takes as long as before.
  ClockedWork mixed = product;
  mixed.clocked = Seconds{0.5};
  const double slower = clock_slowdown(mixed, device);
  ASSERT_GT(slower, 1);
  const Seconds time = Seconds{0.5} * slower + Seconds{0.5};
  const Joules drawn = device.idle_power * time + mixed.products * (1 / slower);
  EXPECT_NEAR(drawn / (device.power_limit * time), 1, 1e-9);
}

// Down to what it draws at rest a step takes ever longer, optimizer and all, and draws what the board may and no less than at rest.
TEST(PassClock, NearRestEveryPassTakesLongerWithoutEnd) {
  Scenario scenario = step_of("llama-3.1-8b", "h200-sxm");
  Seconds full, before;
  for (const double watts : {700.0, 500.0, 300.0, 200.0, 150.0, 136.0, 131.0}) {
    scenario.device.power_limit = Watts{watts};
    const Outcome outcome = evaluate(scenario, toys::transfer_resources());
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    for (const auto& [phase, drawn] : drawn_by_phase(outcome)) {
      EXPECT_LE(drawn.energy.value, watts * drawn.time.value * (1 + 1e-9)) << watts;
      const double rest = scenario.device.idle_power.value;
      EXPECT_GE(drawn.energy.value, rest * drawn.time.value * (1 - 1e-9)) << watts;
    }
    EXPECT_GE(outcome.metrics.iteration_time, before) << watts;
    before = outcome.metrics.iteration_time;
    if (full.value == 0) full = before;
  }
  EXPECT_GT(before, full * 20);
  scenario.device.power_limit = scenario.device.idle_power;
  EXPECT_EQ(evaluate(scenario, toys::transfer_resources()).reason,
            "device.power_limit (130 W) leaves nothing for work: the device draws 130 W at rest "
            "(device.idle_power)");
}

// The limit picks a clock by itself: what it leaves does not depend on a lower one that the device is set to, unless that is lower than the
// limit's own, where the limit does nothing.
TEST(PassClock, ALimitDoesNotAddToALowerClock) {
  for (const char* name : {"h200-sxm", "a100-80gb-sxm"}) {
    Scenario scenario = step_of("llama-3.1-8b", name);
    const Hertz rated = scenario.device.clock;
    const auto step = [&](double clock, Watts watts) {
      scenario.device.clock = rated * clock;
      scenario.device.power_limit = watts;
      const Outcome outcome = evaluate(scenario, toys::transfer_resources());
      EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
      for (const auto& [phase, drawn] : drawn_by_phase(outcome)) {
        EXPECT_LE(drawn.energy.value, watts.value * drawn.time.value * (1 + 1e-9)) << clock;
      }
      return outcome.metrics.iteration_time;
    };
    for (const double share : {0.6, 0.4}) {
      const Watts watts = scenario.device.power_limit * share;
      const Seconds held = step(1, watts);
      EXPECT_GT(held / step(1, watts * 10), 1.05) << share;
      for (const double clock : {0.95, 0.9, 0.85}) {
        EXPECT_NEAR(step(clock, watts) / held, 1, 0.03) << name << " " << share << " " << clock;
      }
      EXPECT_NEAR(step(0.3, watts) / step(0.3, watts * 10), 1, 1e-9) << name << " " << share;
      scenario.device.power_limit = watts * (1 / share);
    }
  }
}

TEST(PassClock, NoDeviceThatCanDoMoreTrainsLonger) {
  struct Better {
    const char* what;
    void (*make)(Device& device);
    // Where a limit holds the device, how a pass goes with the clock is read off two clocks around the one that is set.
    double within = 1e-9;
  };
  const std::array better = {
      Better{"clock", [](Device& device) { device.clock = device.clock * 1.2; }, 0.03},
      Better{"clock twice", [](Device& device) { device.clock = device.clock * 2; }, 0.1},
      Better{"bandwidth",
             [](Device& device) { device.memory_bandwidth = device.memory_bandwidth * 1.5; }},
      Better{"link to the host",
             [](Device& device) { device.host_link.bandwidth = device.host_link.bandwidth * 2; }},
      Better{"power", [](Device& device) { device.power_limit = device.power_limit * 1.3; }}};
  toys::Strategies strategies;
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
      EXPECT_LE(metrics.iteration_time.value,
                outcome.metrics.iteration_time.value * (1 + way.within))
          << i << " " << way.what << " " << scenario.model.name << " on " << scenario.device.name;
    }
  }
  EXPECT_GT(tried, 250);
}

}  // namespace
}  // namespace engine
