// Two models on the same devices, of which one or both have more to do than they can: a model that has less memory has fewer
// sequences in a step, and yet nobody is faster beside another.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

struct Case {
  SharingMode mode;
  bool swap = false;
};

TEST(NeighbourOverload, NobodyIsFasterBesideAnotherHoweverMuchComes) {
  int overloaded = 0;
  for (const Case& each :
       {Case{SharingMode::time_slices}, Case{SharingMode::time_slices, true},
        Case{SharingMode::streams}, Case{SharingMode::spatial}, Case{SharingMode::mig}}) {
    Scenario scenario = toys::scenario();
    scenario.task = Task::serve;
    scenario.host = toys::no_host();
    scenario.load.requests = 1000;
    scenario.load.lengths = {.prompt = 200, .output = 40};
    scenario.neighbour.present = true;
    fill_roles(scenario);
    scenario.sharing = {.mode = each.mode, .switch_time = Seconds{0}, .swap = each.swap};
    for (const double rate : {20.0, 2000.0}) {
      for (const double others : {20.0, 2000.0}) {
        for (const double memory : {0.1, 0.5, 0.8}) {
          scenario.sharing.memory = memory;
          scenario.load.rate = RequestsPerSecond{rate};
          scenario.neighbour.load.rate = RequestsPerSecond{others};
          const Outcome outcome = evaluate(scenario);
          const auto which = testing::Message() << name_of(each.mode) << ", swap " << each.swap
                                                << ", " << rate << ", " << others << ", " << memory;
          EXPECT_EQ(outcome.status, Status::ok) << which << outcome.reason;
          if (outcome.status != Status::ok) continue;
          // Runs of a thousand requests are not measured over the same of them.
          EXPECT_GE(outcome.metrics.sharing_slowdown, 0.99) << which;
          EXPECT_GE(outcome.metrics.neighbour_slowdown, 0.99) << which;
          overloaded += outcome.saturation == Saturation::overloaded ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(overloaded, 5);
}

// Two models with next to nothing to do slow nobody down: a row has all that the model does alone on its part, gaps between tokens
// and whole times among it, though what is only compared has neither.
TEST(NeighbourOverload, WhereNobodyIsSlowedDownARowHasAllFigures) {
  for (const bool itl_is_limited : {false, true}) {
    Scenario scenario = toys::scenario();
    scenario.task = Task::serve;
    scenario.load.rate = RequestsPerSecond{0.001};
    scenario.load.requests = 100;
    scenario.load.lengths = {.prompt = 200, .output = 40};
    if (itl_is_limited) scenario.slo.itl.p95 = Seconds{1};
    scenario.neighbour.present = true;
    fill_roles(scenario);
    scenario.sharing = {.mode = SharingMode::streams, .memory = 0.5};
    Scenario alone = scenario;
    alone.neighbour.present = false;
    alone.device.memory_capacity = alone.device.memory_capacity * 0.5;
    const Metrics shared = evaluate(scenario).metrics, expected = evaluate(alone).metrics;
    EXPECT_EQ(shared.sharing_slowdown, 1);
    EXPECT_GT(shared.itl_p95.value, 0);
    EXPECT_EQ(shared.itl_p95, expected.itl_p95);
    EXPECT_EQ(shared.e2e_p99, expected.e2e_p99);
    EXPECT_EQ(shared.queue, expected.queue);
    EXPECT_EQ(shared.tpot_p50, expected.tpot_p50);
    EXPECT_GT(shared.kv_use, 0);
    EXPECT_EQ(shared.kv_use, expected.kv_use);
    EXPECT_GT(shared.kv_waste, 0);
    EXPECT_EQ(shared.kv_waste, expected.kv_waste);
  }
}

// On multiprocessors of its own, a neighbour that has too much to do takes full steps, whoever waits for them: more requests change
// nothing for the main model. And steps that read and write are on the memory's way no less than steps that only read.
TEST(NeighbourOverload, OnItsOwnMultiprocessorsAFullNeighbourIsAFullNeighbour) {
  Scenario scenario = toys::shipped("models", "llama-3.1-8b");
  scenario.device = toys::shipped("devices", "h200-sxm").device;
  scenario.serving = toys::shipped("serving", "vllm-v1").serving;
  scenario.host = toys::shipped("hosts", "vllm-v1").host;
  scenario.task = Task::serve;
  scenario.load.requests = 2000;
  scenario.load.rate = RequestsPerSecond{8};
  scenario.load.lengths = {.prompt = 500, .output = 250};
  scenario.neighbour.present = true;
  fill_roles(scenario);
  scenario.neighbour.deployment.model = toys::shipped("models", "llama-3.2-3b").model;
  scenario.sharing = {.mode = SharingMode::spatial, .share = 0.6, .memory = 0.6};
  const auto slowdown = [&](double rate) {
    scenario.neighbour.load.rate = RequestsPerSecond{rate};
    const Outcome outcome = evaluate(scenario, toys::shipped_resources());
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    EXPECT_EQ(outcome.metrics.neighbour_overloaded, 1);
    return outcome.metrics.sharing_slowdown;
  };
  const double full = slowdown(300);
  EXPECT_NEAR(slowdown(600) / full, 1, 0.01);
  EXPECT_NEAR(slowdown(1200) / full, 1, 0.01);
  scenario.neighbour.load.lengths.output = 1;
  const double reading = slowdown(2000);
  EXPECT_GT(reading, 1.05);
  EXPECT_GE(full, reading);
}

// One device has one clock.
TEST(NeighbourOverload, AClockThatFollowsOneOfTwoModelsIsRefused) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.slo.tpot.p95 = Seconds{0.05};
  scenario.serving.clock.mode = ClockMode::slo;
  scenario.neighbour.present = true;
  fill_roles(scenario);
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::unsupported);
  EXPECT_EQ(
      outcome.reason,
      "a clock that follows the steps of one of two models on a device is not modelled: state "
      "serving.clock.mode: full");
}

// Whether the neighbour keeps up is told, whatever becomes of the main model.
TEST(NeighbourOverload, WhoStarvesIsTold) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::serve;
  scenario.host = toys::no_host();
  scenario.load.requests = 1000;
  scenario.load.lengths = {.prompt = 200, .output = 40};
  scenario.load.rate = RequestsPerSecond{5};
  scenario.neighbour.present = true;
  fill_roles(scenario);
  for (const SharingMode mode :
       {SharingMode::time_slices, SharingMode::streams, SharingMode::spatial, SharingMode::mig}) {
    scenario.sharing.mode = mode;
    for (const double rate : {5.0, 5000.0}) {
      scenario.neighbour.load.rate = RequestsPerSecond{rate};
      const Outcome outcome = evaluate(scenario);
      ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
      EXPECT_EQ(outcome.metrics.neighbour_overloaded, rate > 5 ? 1 : 0) << name_of(mode);
    }
  }
}

}  // namespace
}  // namespace engine
