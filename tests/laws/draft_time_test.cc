// What counts as time in which tokens are proposed.
#include <gtest/gtest.h>

#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::sound;
using toys::speculative;
using toys::with_draft;

// One request after another.
Scenario served(Scenario scenario) {
  scenario.task = Task::serve;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 1;
  scenario.load.requests = 30;
  scenario.load.measure = MeasureKind::whole;
  return scenario;
}

// Reading a prompt is no proposing: a served load counts what a request counts.
TEST(DraftTime, IsThatOfProposalsHoweverLongPromptsAre) {
  for (const std::int64_t prompt : {10, 1000, 20000}) {
    Scenario scenario = with_draft(speculative(SpeculationMethod::draft_model, 3, "0.5"));
    scenario.task = Task::request;
    scenario.request = {.prompt = prompt, .output = 21};
    const Metrics single = sound(scenario).metrics;
    scenario = served(scenario);
    scenario.load.lengths = {.prompt = prompt, .output = 21};
    const Metrics load = sound(scenario).metrics;
    EXPECT_NEAR(load.draft_time.value / (30 * single.draft_time.value), 1, 0.01) << prompt;
    EXPECT_NEAR(load.draft_share / single.draft_share, 1, 0.01) << prompt;
    // Nor is reading one when it is first asked.
    scenario.speculation.dynamic = true;
    const Metrics late = sound(scenario).metrics;
    EXPECT_LE(late.draft_time.value, load.draft_time.value * 1.01) << prompt;
  }
}

}  // namespace
}  // namespace engine
