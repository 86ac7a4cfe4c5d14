// A model that proposes tokens, on devices that it has in turns with another: its draft's weights come and go with it.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/speculation_toys.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario swapped(SpeculationMethod method, double slice) {
  Scenario scenario = toys::speculative(method, 3, "0.8 0.6 0.5");
  scenario.host = toys::no_host();
  scenario.step = {.phase = StepPhase::decode, .batch = 8, .context = 1000};
  scenario.neighbour.present = true;
  fill_roles(scenario);
  if (method == SpeculationMethod::draft_model) scenario = toys::with_draft(scenario);
  scenario.sharing = {.mode = SharingMode::time_slices,
                      .slice = Seconds{slice},
                      .switch_time = Seconds{0},
                      .swap = true};
  return scenario;
}

TEST(SwappedDrafts, ComeOverTheHostLinkWithTheirModel) {
  const auto figures = [](SpeculationMethod method) {
    return toys::sound(swapped(method, 10)).metrics;
  };
  const Metrics looked_up = figures(SpeculationMethod::ngram);
  const Metrics drafted = figures(SpeculationMethod::draft_model);
  const Device device = toys::scenario().device;
  const double rate = device.host_link.bandwidth.value;
  EXPECT_GT(drafted.weights, looked_up.weights);
  EXPECT_NEAR((drafted.swap_time - looked_up.swap_time).value,
              (drafted.weights - looked_up.weights).value / rate, 1e-9);
}

TEST(SwappedDrafts, SteppingAndClosedFormAgree) {
  for (const SpeculationMethod method :
       {SpeculationMethod::ngram, SpeculationMethod::draft_model, SpeculationMethod::heads}) {
    for (const double slice : {0.05, 0.4, 3.0}) {
      for (const std::int64_t output : {1, 7, 60}) {
        Scenario scenario = swapped(method, slice);
        scenario.task = Task::serve;
        scenario.load.rate = RequestsPerSecond{4};
        scenario.load.requests = 80;
        scenario.load.lengths = {.prompt = 150, .output = output};
        scenario.neighbour.load = scenario.load;
        const Outcome closed = toys::sound(scenario);
        scenario.serving.stepping = scenario.neighbour.deployment.serving.stepping = true;
        toys::expect_same_figures(closed, toys::sound(scenario), 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace engine
