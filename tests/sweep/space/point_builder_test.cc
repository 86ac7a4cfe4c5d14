// Conditions, requirements, derivations; spaces too large to expand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "sweep/space/space.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using testing::ElementsAre;

TEST(When, AnAxisThatDoesNotApplyCountsOnce) {
  for (const char* prompt :
       {"  - step.prompt: {values: [128, 256, 512], when: \"step.phase == 'prefill'\"}\n",
        "  - step.prompt: [128, 256, 512]\n    when: \"step.phase == 'prefill'\"\n"}) {
    const SweepSpec spec = toy_sweep(
        "base: {device: toy, model: tiny, step: {prompt: 77}}\n"
        "axes:\n  - step.phase: [prefill, decode]\n" +
        std::string(prompt));
    const auto points = all_points(spec);
    ASSERT_EQ(points.size(), 6U);
    std::vector<Admission> admissions;
    for (const BuiltPoint& built : points) admissions.push_back(built.admission);
    EXPECT_THAT(admissions, ElementsAre(Admission::admitted, Admission::admitted,
                                        Admission::admitted, Admission::admitted,
                                        Admission::not_applicable, Admission::not_applicable));
    EXPECT_THAT(leaf_over(spec, "step.prompt"), ElementsAre(128, 256, 512, 77));
    EXPECT_EQ(label_of(spec, points[0].point, "step.prompt"), "128");
    EXPECT_EQ(label_of(spec, points[3].point, "step.prompt"), "-");
  }
}

TEST(When, AValueThatDoesNotApplyIsLeftOut) {
  const SweepSpec spec =
      toy_sweep(kToyBase +
                "axes:\n"
                "  - parallel.tp: [1, 8]\n"
                "  - step.batch: [1, {value: 64, when: \"parallel.tp == 8\"}]\n");
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(1, 1, 64));
}

// The order of the list is the user's; what a condition sees does not depend on it.
TEST(When, SeesEveryUnconditionalAxisEvenLaterOnes) {
  const SweepSpec spec = toy_sweep(kToyBase +
                                   "axes:\n"
                                   "  - step.batch: {values: [1, 2], when: \"parallel.tp == 8\"}\n"
                                   "  - parallel.tp: [1, 8]\n");
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(1, 1, 2));
  EXPECT_THAT(leaf_over(spec, "parallel.tp"), ElementsAre(1, 8, 8));
}

TEST(When, AConditionalWholeSpecDoesNotUndoANarrowerAxis) {
  const SweepSpec spec = toy_sweep(kToyBase +
                                   "axes:\n"
                                   "  - device: {values: [toy-wide], when: \"parallel.tp == 8\"}\n"
                                   "  - device.l2_capacity: [10 MB]\n"
                                   "  - parallel.tp: [1, 8]\n");
  EXPECT_THAT(leaf_over(spec, "device.memory_bandwidth"), ElementsAre(2e12, 4e12));
  EXPECT_THAT(leaf_over(spec, "device.l2_capacity"), ElementsAre(10e6, 10e6));
}

TEST(When, AGroupIsOnOrOffTogether) {
  const SweepSpec spec = toy_sweep(kToyBase +
                                   "axes:\n"
                                   "  - parallel.tp: [1, 8]\n"
                                   "  - zip: {step.batch: [1, 2, 3], step.context: [10, 20, 30]}\n"
                                   "    when: \"parallel.tp == 8\"\n"
                                   "  - sample: {random: 2, of: {device.clock: [1 GHz, 2 GHz]}, "
                                   "when: \"parallel.tp == 1\"}\n");
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(1, 1, 1, 2, 3));
  EXPECT_THAT(leaf_over(spec, "step.context"), ElementsAre(1024, 1024, 10, 20, 30));
}

TEST(Require, RejectedPointsKnowTheirReason) {
  const SweepSpec spec =
      toy_sweep(kToyBase +
                "axes:\n  - step.batch: [1, 10, 100]\n  - step.context: [10, 100]\n"
                "require:\n"
                "  - \"step.batch * step.context < 10000\"\n"
                "  - {expr: \"step.batch > 1\", reason: too small to matter}\n");
  EXPECT_THAT(spec.space.requirements(),
              ElementsAre("step.batch * step.context < 10000", "too small to matter"));
  std::vector<int> by;
  for (const BuiltPoint& built : all_points(spec)) by.push_back(built.rejected_by);
  EXPECT_THAT(by, ElementsAre(1, 1, -1, -1, -1, 0));
}

TEST(Require, UnitsAndNames) {
  const SweepSpec spec =
      toy_sweep(kToyBase +
                "axes:\n  - device: [toy, toy-wide]\n"
                "require: \"device.memory_bandwidth >= 3 TB/s or device == 'toy'\"\n");
  EXPECT_EQ(admitted(spec).size(), 2U);
}

TEST(Derive, WholeNumbersRoundDownAndNamesMayBeChosen) {
  const SweepSpec spec = toy_sweep(kToyBase +
                                   "axes:\n  - step.batch: [1, 16]\n"
                                   "derive:\n"
                                   "  step.cached: \"step.batch / 3\"\n"
                                   "  step.prompt: \"step.cached + 0.29 * 100\"\n"
                                   "  host.mode: \"step.batch > 8 ? 'graph' : 'eager'\"\n"
                                   "  host.name: \"step.batch > 8 ? 'large' : device\"\n"
                                   "  host.asynchronous: \"step.batch > 8\"\n"
                                   "  device.memory_capacity: \"step.batch * 10 GB\"\n");
  EXPECT_THAT(leaf_over(spec, "step.cached"), ElementsAre(0, 5));
  EXPECT_THAT(leaf_over(spec, "step.prompt"), ElementsAre(29, 34));
  EXPECT_THAT(leaf_over(spec, "host.mode"), ElementsAre(0, 1));
  EXPECT_EQ(admitted(spec)[0].host.name, "toy");
  EXPECT_EQ(admitted(spec)[1].host.name, "large");
  EXPECT_THAT(leaf_over(spec, "host.asynchronous"), ElementsAre(0, 1));
  EXPECT_THAT(leaf_over(spec, "device.memory_capacity"), ElementsAre(10e9, 160e9));
}

// What is swept is its value before; points do not inherit what the one before them derived.
TEST(Derive, MayGoOnFromWhatIsSwept) {
  const std::string swept = "axes:\n  - step.batch: [1, 16]\n  - step.context: [100, 200]\n";
  const SweepSpec spec =
      toy_sweep(kToyBase + swept + "derive: {step.batch: \"min(2 * step.batch, 20)\"}\n");
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(2, 2, 20, 20));
  const auto again = read_sweep_text(spec.resolved, "run.yaml", toy_library());
  ASSERT_TRUE(again.ok()) << engine::to_text(again.mistakes());
  EXPECT_THAT(leaf_over(*again, "step.batch"), ElementsAre(2, 2, 20, 20));
  const auto other = read_sweep_text(
      kToyBase + swept + "derive: {step.batch: \"step.context / 2\"}\n", "a.yaml", toy_library());
  EXPECT_FALSE(other.ok());
}

TEST(Derive, AValueOutOfRangeRejectsThePoint) {
  const SweepSpec spec = toy_sweep(
      kToyBase +
      "axes:\n  - step.batch: [1, 2, 4]\n"
      "derive: {step.prompt: \"step.batch - 2\", step.cached: \"1 / (step.batch - 4)\"}\n");
  const auto points = all_points(spec);
  EXPECT_EQ(points[0].admission, Admission::rejected);
  EXPECT_EQ(spec.space.requirements()[std::size_t(points[0].rejected_by)],
            "derived step.prompt is a whole number, at least 1");
  EXPECT_EQ(points[1].admission, Admission::rejected);  // prompt 0
  EXPECT_EQ(points[2].admission, Admission::rejected);  // cached 1/0
  EXPECT_EQ(spec.space.requirements()[std::size_t(points[2].rejected_by)],
            "derived step.cached is a whole number, at least 0");
}

TEST(Space, ATrillionPointsCountAtOnce) {
  std::string axes = "axes:\n";
  for (const char* path : {"step.batch", "step.context", "step.prompt", "request.output"}) {
    axes += std::string("  - ") + path + ": {linear: [1, 1000], count: 1000}\n";
  }
  const SweepSpec spec = toy_sweep(kToyBase + axes + "require: [\"step.batch < 1000\"]\n");
  EXPECT_EQ(spec.space.size(), 1'000'000'000'000U);
  PointBuilder builder(spec.space);
  Point point;
  EXPECT_EQ(builder.build(123'456'789'012, point), Admission::admitted);
  EXPECT_EQ(point.scenario.step.batch, 124);
  EXPECT_EQ(point.scenario.step.context, 457);
  EXPECT_EQ(point.scenario.step.prompt, 790);
  EXPECT_EQ(point.scenario.request.output, 13);
  EXPECT_EQ(builder.build(999'999'999'999, point), Admission::rejected);
}

TEST(Space, EveryPointHasAKeyOfItsOwn) {
  const std::string axes =
      "axes:\n  - device: [toy, toy-wide]\n  - parallel.dp: {linear: [1, 50], count: 50}\n"
      "  - device.l2_capacity: {geometric: [1 MB, 100 MB], count: 10}\n"
      "  - quant.kv: [bf16, fp8]\nreplicates: 2\n";
  const auto keys_of = [](const SweepSpec& spec) {
    std::set<engine::Key> keys;
    for (const BuiltPoint& built : all_points(spec)) keys.insert(built.point.key);
    return keys.size();
  };
  EXPECT_EQ(keys_of(toy_sweep("base: {device: toy, model: tiny, task: serve}\n" + axes)), 4000u);
  // Nothing in a step is random: its replicates are one point.
  EXPECT_EQ(keys_of(toy_sweep(kToyBase + axes)), 2000u);
}

// Adding a value or an axis at its base value must not move the identity of what was there.
TEST(Space, KeysDoNotDependOnTheRestOfTheSweep) {
  const SweepSpec narrow = toy_sweep(kToyBase + "axes:\n  - step.batch: [2]\n");
  const SweepSpec wide =
      toy_sweep(kToyBase + "axes:\n  - quant.kv: [fp8, bf16]\n  - step.batch: [1, 2]\n");
  EXPECT_EQ(all_points(narrow)[0].point.key, all_points(wide)[3].point.key);
}

TEST(Space, PointsDoNotDependOnTheOrderTheyAreBuiltIn) {
  const SweepSpec spec =
      toy_sweep(kToyBase +
                "axes:\n  - device: [toy, toy-wide]\n"
                "  - step.phase: [prefill, decode]\n"
                "  - step.prompt: {values: [1, 2, 3], when: \"step.phase == 'prefill'\"}\n"
                "  - sample: {latin_hypercube: 5, of: {device.clock: [1 GHz, 2 GHz]}}\n");
  const auto forward = all_points(spec);
  PointBuilder builder(spec.space);
  Point point;  // its memory is reused: nothing of the last point may stay behind
  for (std::uint64_t i = spec.space.size(); i-- > 0;) {
    ASSERT_EQ(builder.build(i, point), forward[i].admission);
    if (forward[i].admission != Admission::admitted) continue;
    EXPECT_EQ(point.key, forward[i].point.key);
    EXPECT_EQ(point.labels, forward[i].point.labels);
  }
}

TEST(Space, KnowsWhichLeavesVary) {
  const SweepSpec spec = toy_sweep(
      kToyBase + "axes:\n  - step.batch: [1, 2]\nderive: {step.cached: \"step.batch\"}\n");
  std::vector<std::string> paths;
  for (const int leaf : spec.space.varied_leaves()) {
    paths.push_back(engine::leaf_table().leaves[std::size_t(leaf)].path);
  }
  EXPECT_THAT(paths, ElementsAre("step.batch", "step.cached"));
}

}  // namespace
}  // namespace sweep
