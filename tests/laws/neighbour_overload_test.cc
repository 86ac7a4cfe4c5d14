// Two models on the same devices, of which one or both have more to do than they can: a model that has less memory has fewer
// sequences in a step, and yet nobody is faster beside another.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
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

}  // namespace
}  // namespace engine
