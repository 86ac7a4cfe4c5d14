// Deployments beside the main one, wherever the language may name them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using testing::ElementsAre;

constexpr double kAbsent = -1;

std::string request_on_toy(const std::string& more) {
  return "base: {task: request, device: toy, model: tiny" + more + "}\n";
}

// A number of the role over all points; kAbsent where it is not there.
std::vector<double> of_prefill(const SweepSpec& spec, const std::string& path) {
  const engine::LeafTable& table = engine::leaf_table();
  const engine::Leaf& leaf = table.leaves[std::size_t(table.find_leaf("prefill." + path))];
  std::vector<double> values;
  for (const engine::Scenario& scenario : admitted(spec)) {
    values.push_back(scenario.prefill.present ? engine::leaf_as_double(scenario, leaf) : kAbsent);
  }
  return values;
}

std::vector<engine::Key> keys_of(const SweepSpec& spec) {
  std::vector<engine::Key> keys;
  for (const BuiltPoint& built : all_points(spec)) keys.push_back(built.point.key);
  return keys;
}
engine::Key key_of_base(const std::string& base) { return keys_of(toy_sweep(base)).front(); }

TEST(Roles, WhatIsNotStatedFollowsTheMainDeploymentWithItsAxes) {
  const SweepSpec spec = toy_sweep(request_on_toy(", prefill: {parallel: {tp: 4}}") +
                                   "axes:\n"
                                   "  - device: [toy, toy-wide]\n"
                                   "  - device.clock: [1 GHz, 2 GHz]\n"
                                   "  - parallel.tp: [1, 2]\n");
  for (const engine::Scenario& scenario : admitted(spec)) {
    EXPECT_TRUE(scenario.prefill.present);
    const engine::Deployment& prefill = scenario.prefill.deployment;
    EXPECT_EQ(prefill.device.name, scenario.device.name);
    EXPECT_EQ(prefill.device.clock, scenario.device.clock);
    EXPECT_EQ(prefill.device.l2_capacity, scenario.device.l2_capacity);
    EXPECT_EQ(prefill.model.name, "tiny");
    EXPECT_EQ(prefill.parallel.tp, 4);
  }
  EXPECT_EQ(admitted(spec).size(), 8U);
}

TEST(Roles, TheRolesOwnAxesComeAfterWhatTheBaseSaysOfIt) {
  const SweepSpec spec =
      toy_sweep(request_on_toy(", prefill: {device: toy-wide, parallel: {tp: 4}}") +
                "axes:\n"
                "  - prefill.parallel.tp: [2, 8]\n"
                "  - parallel.tp: [1, 16]\n"
                "  - prefill.device.clock: [3 GHz]\n");
  EXPECT_THAT(of_prefill(spec, "parallel.tp"), ElementsAre(2, 2, 8, 8));
  EXPECT_THAT(of_prefill(spec, "device.clock"), ElementsAre(3e9, 3e9, 3e9, 3e9));
  EXPECT_THAT(leaf_over(spec, "parallel.tp"), ElementsAre(1, 16, 1, 16));
}

TEST(Roles, ARoleThatIsThereIsAnotherPointThanNone) {
  EXPECT_NE(key_of_base(request_on_toy(", prefill: {}")), key_of_base(request_on_toy("")));
  EXPECT_EQ(key_of_base(request_on_toy(", prefill: none")), key_of_base(request_on_toy("")));
}

TEST(Roles, StatingTheMainDeploymentsOwnValueChangesNothing) {
  const engine::Key plain = key_of_base(request_on_toy(", prefill: {}"));
  EXPECT_EQ(key_of_base(request_on_toy(", prefill: {device: toy}")), plain);
  EXPECT_EQ(key_of_base(request_on_toy(", prefill: {device: {from: toy}, model: tiny}")), plain);
  EXPECT_EQ(key_of_base(request_on_toy(", prefill.parallel.tp: 1")), plain);
  EXPECT_NE(key_of_base(request_on_toy(", prefill.parallel.tp: 2")), plain);
}

TEST(Roles, NoneTakesARoleAway) {
  const SweepSpec spec = toy_sweep(request_on_toy(", prefill: {parallel: {tp: 4}}") +
                                   "axes: [{prefill: [none, {}, {parallel: {tp: 8}}]}]\n");
  EXPECT_THAT(of_prefill(spec, "parallel.tp"), ElementsAre(kAbsent, 4, 8));
  EXPECT_EQ(keys_of(spec)[0], key_of_base(request_on_toy("")));
  EXPECT_EQ(keys_of(spec)[1], key_of_base(request_on_toy(", prefill: {parallel: {tp: 4}}")));
  EXPECT_EQ(label_of(spec, all_points(spec)[0].point, "prefill"), "none");
}

// An axis inside a role brings it about, but not where another axis says `none`.
TEST(Roles, AnAxisInsideARoleMakesItBeThere) {
  const std::string tp = "  - prefill.parallel.tp: [2, 4]\n";
  EXPECT_THAT(of_prefill(toy_sweep(request_on_toy("") + "axes:\n" + tp), "parallel.tp"),
              ElementsAre(2, 4));
  EXPECT_THAT(of_prefill(toy_sweep(request_on_toy("") + "axes:\n  - prefill: [none, {}]\n" + tp),
                         "parallel.tp"),
              ElementsAre(kAbsent, kAbsent, 2, 4));
  EXPECT_THAT(of_prefill(toy_sweep(request_on_toy("") +
                                   "axes:\n  - prefill: [none, {}]\n"
                                   "  - prefill.parallel.tp: [2, 4]\n    when: prefill.present\n"),
                         "parallel.tp"),
              ElementsAre(kAbsent, 2, 4));
}

TEST(Roles, EveryFormOfAxisMayNameOne) {
  EXPECT_THAT(of_prefill(toy_sweep(request_on_toy("") +
                                   "axes: [{zip: {prefill: [none, {}], parallel.tp: [1, 2]}}]\n"),
                         "parallel.tp"),
              ElementsAre(kAbsent, 2));
  EXPECT_THAT(
      of_prefill(toy_sweep(request_on_toy("") + "axes:\n  - concat:\n"
                                                "    - [{parallel.tp: [1, 2]}]\n"
                                                "    - {base: {prefill: {parallel: {tp: 4}}}}\n"
                                                "    - [{prefill.parallel.tp: [8]}]\n"),
                 "parallel.tp"),
      ElementsAre(kAbsent, kAbsent, 4, 8));
  const auto drawn = of_prefill(
      toy_sweep(request_on_toy("") +
                "axes: [{sample: {sobol: 4, of: {prefill.device.clock: [1 GHz, 2 GHz]}}}]\n"),
      "device.clock");
  EXPECT_EQ(std::set<double>(drawn.begin(), drawn.end()).size(), 4U);
}

TEST(Roles, ExpressionsSeeARoleAndDeriveIt) {
  const SweepSpec spec = toy_sweep(request_on_toy("") +
                                   "axes:\n"
                                   "  - prefill: [none, {}]\n"
                                   "  - request.batch: [1, 2]\n"
                                   "derive:\n"
                                   "  prefill.parallel.tp: request.batch * 4\n"
                                   "  parallel.pp: request.batch\n");
  EXPECT_THAT(of_prefill(spec, "parallel.tp"), ElementsAre(kAbsent, kAbsent, 4, 8));
  EXPECT_THAT(of_prefill(spec, "parallel.pp"), ElementsAre(kAbsent, kAbsent, 1, 2));
  EXPECT_THAT(leaf_over(spec, "parallel.tp"), ElementsAre(1, 1, 1, 1));

  // What is not there compares as false, whatever a thread built before.
  const SweepSpec required = toy_sweep(request_on_toy("") +
                                       "axes: [{prefill: [{parallel: {tp: 4}}, none, {}]}]\n"
                                       "require: [\"prefill.parallel.tp == 4\"]\n");
  EXPECT_THAT(of_prefill(required, "parallel.tp"), ElementsAre(4));
}

TEST(Roles, MistakesSayWhatToWrite) {
  EXPECT_EQ(mistakes_of(request_on_toy(", prefill: toy")),
            "toy.yaml:1:58: error: prefill: 'toy' is neither a map of fields nor 'none'\n"
            "  hint: write 'prefill: {}' for one like the main deployment, or what differs, as in "
            "'prefill: {parallel: {tp: 4}}'\n");
  EXPECT_EQ(mistakes_of(request_on_toy("") + "axes: [{prefil.device: [toy]}]\n"),
            "toy.yaml:2:9: error: unknown path 'prefil.device'\n"
            "  hint: did you mean 'prefill.device'?\n");
}

TEST(Roles, AnAxisOfARoleThatTheTaskHasNotIsInert) {
  const auto read = [](const std::string& task) {
    const auto spec = read_sweep_text(
        "base: {task: " + task + ", device: toy, model: tiny}\naxes: [{prefill: [none, {}]}]\n",
        "toy.yaml", toy_library());
    return spec ? "" : engine::to_text(spec.mistakes());
  };
  EXPECT_EQ(read("request"), "");
  EXPECT_NE(read("step").find("'prefill' changes nothing here"), std::string::npos);
}

}  // namespace
}  // namespace sweep
