// Proposals that hold more often for some classes of requests than for others.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/speculation/acceptance.h"
#include "tests/support/speculation_toys.h"

namespace engine {
namespace {

using toys::expect_same_figures;
using toys::sound;
using toys::speculative;
using toys::with_draft;

// Code (high) and prose (low) beside what is normal.
Scenario mixed(const std::string& code, const std::string& prose) {
  Scenario scenario = speculative(SpeculationMethod::ngram, 3, "0.6");
  scenario.task = Task::serve;
  scenario.load.arrivals = ArrivalKind::closed;
  scenario.load.clients = 12;
  scenario.load.requests = 360;
  scenario.load.lengths = {.prompt = 50, .output = 120};
  scenario.load.classes.high = {.share = 0.3, .acceptance = code};
  scenario.load.classes.low = {.share = 0.3, .acceptance = prose};
  return scenario;
}

// 1 + a + a^2 + a^3 tokens a step of each, whoever shares the steps.
TEST(AcceptanceByClass, EachClassMakesItsOwnTokensAStep) {
  for (const AcceptanceDraws draws : {AcceptanceDraws::expected, AcceptanceDraws::drawn}) {
    Scenario scenario = mixed("0.9", "0.2");
    scenario.speculation.draws = draws;
    const Metrics metrics = sound(scenario).metrics;
    const double chance = draws == AcceptanceDraws::drawn ? 0.05 : 0.02;
    EXPECT_NEAR(metrics.accepted_high, 3.439, chance * 3.439);
    EXPECT_NEAR(metrics.accepted_normal, 2.176, chance * 2.176);
    EXPECT_NEAR(metrics.accepted_low, 1.248, chance * 1.248);
    EXPECT_LT(metrics.tpot_p95_high, metrics.tpot_p95_normal);
    EXPECT_LT(metrics.tpot_p95_normal, metrics.tpot_p95_low);
  }
}

// Where all classes are alike, nobody is more than a step from where the mean pace of all would have them.
TEST(AcceptanceByClass, ThatIsTheSameForAllIsOneAcceptance) {
  Scenario one = mixed("", ""), by_class = mixed("0.6", "0.6");
  one.host.step_overhead = by_class.host.step_overhead = Seconds{0.01};
  const Metrics a = sound(one).metrics, b = sound(by_class).metrics;
  EXPECT_NEAR(b.accepted_tokens_per_step, a.accepted_tokens_per_step, 0.02);
  EXPECT_NEAR(b.e2e.value, a.e2e.value, 0.011 + 0.01 * a.e2e.value);
  EXPECT_TRUE(std::isnan(a.accepted_high));
}

TEST(AcceptanceByClass, CountsForClassesThatAreThereAndSteppingIsTheSame) {
  Scenario nobody = mixed("0.9", ""), plain = mixed("", "");
  nobody.load.classes.high.share = plain.load.classes.high.share = 0;
  expect_same_figures(sound(nobody), sound(plain), 0);
  for (const bool dynamic : {false, true}) {
    Scenario scenario = with_draft(mixed("0.9 0.8", "0.1"));
    scenario.speculation.method = SpeculationMethod::draft_model;
    scenario.speculation.dynamic = dynamic;
    const Outcome fast = sound(scenario);
    scenario.serving.stepping = true;
    expect_same_figures(fast, sound(scenario), 1e-9);
  }
}

TEST(AcceptanceByClass, SaysWhichListIsNone) {
  const Outcome outcome = evaluate(mixed("0.9", "often"));
  EXPECT_EQ(outcome.reason, "load.classes.low.acceptance is no list of numbers from 0 to 1");
}

}  // namespace
}  // namespace engine
