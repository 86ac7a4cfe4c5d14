// Speculation as a sweep writes it: lists of probabilities, the draft's model, and what is not taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string speculating(const std::string& fields, const std::string& more = "") {
  return "base: {device: toy, model: tiny, speculation: {" + fields + "}" + more + "}\n";
}

std::vector<std::string> acceptances(const std::string& text) {
  std::vector<std::string> all;
  for (const engine::Scenario& scenario : admitted(toy_sweep(text))) {
    all.push_back(scenario.speculation.acceptance);
  }
  return all;
}

TEST(SpeculationSpec, AcceptanceIsANumberOrAList) {
  EXPECT_THAT(acceptances(speculating("acceptance: 0.8")), ElementsAre("0.8"));
  EXPECT_THAT(acceptances(speculating("acceptance: [0.80, 0.75, 1]")), ElementsAre("0.8 0.75 1"));
  EXPECT_THAT(acceptances(speculating("acceptance: '0.8 0.75'")), ElementsAre("0.8 0.75"));
  EXPECT_THAT(acceptances(speculating("tokens: 2") +
                          "axes: [{speculation.acceptance: [0.5, [0.9, 0.8], 1]}]\n"),
              ElementsAre("0.5", "0.9 0.8", "1"));
}

TEST(SpeculationSpec, OtherNumbersAreMistakesWithTheirPlace) {
  EXPECT_EQ(mistakes_of(speculating("acceptance: [0.8, 1.5]")),
            "toy.yaml:1:66: error: speculation.acceptance: '1.5' is out of range\n"
            "  hint: it must be between 0 and 1\n");
  EXPECT_THAT(mistakes_of(speculating("acceptance: [0.8, often]")),
              HasSubstr("speculation.acceptance: 'often' is not a number"));
  EXPECT_THAT(mistakes_of(speculating("acceptance: {a: 1}")),
              HasSubstr("is not a list of numbers"));
  EXPECT_THAT(mistakes_of(speculating("tokens: 65")), HasSubstr("between 0 and 64"));
  EXPECT_THAT(mistakes_of(speculating("drafts: tiny")), HasSubstr("did you mean 'draft'?"));
}

TEST(SpeculationSpec, TheDraftIsAModelBesideTheMainOne) {
  const SweepSpec spec = toy_sweep(
      speculating("method: draft_model, draft: small, tokens: 2", ", draft.parallel.tp: 2") +
      "axes: [{parallel.tp: [2, 4]}]\n");
  const auto scenarios = admitted(spec);
  ASSERT_EQ(scenarios.size(), 2U);
  for (const engine::Scenario& scenario : scenarios) {
    EXPECT_TRUE(scenario.draft.present);
    EXPECT_EQ(scenario.draft.deployment.model.name, "small");
    EXPECT_EQ(scenario.draft.deployment.device.name, "toy");
    EXPECT_EQ(scenario.draft.deployment.parallel.tp, 2);
    EXPECT_EQ(scenario.model.name, "tiny");
  }
  const SweepSpec swept = toy_sweep(speculating("method: draft_model, tokens: 2") +
                                    "axes: [{speculation.draft: [small, tiny]}]\n");
  std::vector<std::string> names;
  for (const engine::Scenario& scenario : admitted(swept)) {
    names.push_back(scenario.draft.deployment.model.name);
  }
  EXPECT_THAT(names, ElementsAre("small", "tiny"));
  EXPECT_THAT(mistakes_of(kToyBase + "axes: [{speculation: [{draft: small}, {tokens: 1}]}]\n"),
              HasSubstr("cannot set draft.model"));
}

TEST(SpeculationSpec, AResolvedSweepSaysTheSame) {
  const SweepSpec spec = toy_sweep(
      speculating("method: draft_model, draft: small, tokens: 2, acceptance: [0.8, 0.7]") +
      "axes: [{speculation.acceptance: [0.5, [0.9, 0.8]]}, {draft.parallel.tp: [1, 2]}]\n");
  const auto again = read_sweep_text(spec.resolved, "run.yaml", toy_library(), InertAxes::allowed);
  ASSERT_TRUE(again) << engine::to_text(again.mistakes());
  const auto before = all_points(spec), after = all_points(*again);
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].point.key, after[i].point.key);
  }
}

}  // namespace
}  // namespace sweep
