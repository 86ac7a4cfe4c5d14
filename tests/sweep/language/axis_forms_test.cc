// Every way to write an axis, and which points it gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

using testing::DoubleEq;
using testing::Each;
using testing::ElementsAre;
using testing::Pointwise;

SweepSpec with_axes(const std::string& axes) { return toy_sweep(kToyBase + "axes:\n" + axes); }

TEST(Axes, AListOfNumbers) {
  const SweepSpec spec = with_axes("  - step.batch: [1, 8, 64]\n");
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(1, 8, 64));
  EXPECT_EQ(spec.space.label_columns().size(), 1U);
  EXPECT_THAT(spec.space.label_columns()[0].values, ElementsAre("1", "8", "64"));
}

TEST(Axes, AListOfQuantitiesKeepsItsLabels) {
  const SweepSpec spec = with_axes("  - device.memory_bandwidth: [2 TB/s, 3350 GB/s]\n");
  EXPECT_THAT(leaf_over(spec, "device.memory_bandwidth"), ElementsAre(2e12, 3.35e12));
  EXPECT_THAT(spec.space.label_columns()[0].values, ElementsAre("2 TB/s", "3350 GB/s"));
}

TEST(Axes, NamesOfAnEnumerationAndTruthValues) {
  const SweepSpec spec =
      with_axes("  - quant.kv: [bf16, fp8]\n  - host.asynchronous: [true, false]\n");
  EXPECT_THAT(leaf_over(spec, "quant.kv"), ElementsAre(2, 2, 4, 4));
  EXPECT_THAT(leaf_over(spec, "host.asynchronous"), ElementsAre(1, 0, 1, 0));
}

TEST(Axes, LinearRangesHitTheirEndsExactly) {
  const SweepSpec spec = with_axes("  - device.clock: {linear: [1 GHz, 2 GHz], count: 5}\n");
  EXPECT_THAT(leaf_over(spec, "device.clock"), ElementsAre(1e9, 1.25e9, 1.5e9, 1.75e9, 2e9));
}

TEST(Axes, GeometricRangesKeepTheRatio) {
  const std::vector<double> values = leaf_over(
      with_axes("  - device.memory_bandwidth: {geometric: [2 TB/s, 16 TB/s], count: 4}\n"),
      "device.memory_bandwidth");
  EXPECT_THAT(values, ElementsAre(2e12, 4e12, 8e12, 16e12));
}

TEST(Axes, RangesMayDescend) {
  EXPECT_THAT(leaf_over(with_axes("  - step.batch: {linear: [8, 2], count: 4}\n"), "step.batch"),
              ElementsAre(8, 6, 4, 2));
}

TEST(Axes, WholeNumbersAreRoundedAndNotRepeated) {
  EXPECT_THAT(leaf_over(with_axes("  - step.batch: {geometric: [1, 8], count: 8}\n"), "step.batch"),
              ElementsAre(1, 2, 3, 4, 6, 8));
}

TEST(Axes, PowersOfTwo) {
  EXPECT_THAT(leaf_over(with_axes("  - step.batch: {powers_of_two: [4, 64]}\n"), "step.batch"),
              ElementsAre(4, 8, 16, 32, 64));
  EXPECT_THAT(leaf_over(with_axes("  - device.l2_capacity: {powers_of_two: [30 MB, 120 MB]}\n"),
                        "device.l2_capacity"),
              ElementsAre(30e6, 60e6, 120e6));
}

TEST(Axes, WholeSpecsByName) {
  const SweepSpec spec = with_axes("  - device: [toy, toy-wide]\n");
  EXPECT_THAT(leaf_over(spec, "device.memory_bandwidth"), ElementsAre(2e12, 4e12));
  // toy-wide is toy but for its bandwidth, and has a name of its own.
  EXPECT_THAT(leaf_over(spec, "device.memory_capacity"), ElementsAre(100e9, 100e9));
  EXPECT_EQ(admitted(spec)[1].device.name, "toy-wide");
  EXPECT_EQ(admitted(spec)[1].device.scale_up.name, "toylink");
}

TEST(Axes, WholeSpecsWithOverrides) {
  const SweepSpec spec = with_axes(
      "  - device:\n"
      "      - toy\n"
      "      - {from: toy-wide, l2_capacity: 200 MB, scale_up: {bandwidth: 1 TB/s}}\n");
  const auto points = admitted(spec);
  EXPECT_EQ(points[1].device.memory_bandwidth.value, 4e12);
  EXPECT_EQ(points[1].device.l2_capacity.value, 200e6);
  EXPECT_EQ(points[1].device.scale_up.bandwidth.value, 1e12);
  EXPECT_EQ(points[1].device.scale_up.devices, 8);
}

TEST(Axes, SectionsWithoutALibraryAreMaps) {
  const SweepSpec spec = with_axes("  - parallel: [{tp: 8}, {tp: 4, pp: 2}]\n");
  EXPECT_THAT(leaf_over(spec, "parallel.tp"), ElementsAre(8, 4));
  EXPECT_THAT(leaf_over(spec, "parallel.pp"), ElementsAre(1, 2));
  EXPECT_THAT(spec.space.label_columns()[0].values, ElementsAre("{tp: 8}", "{tp: 4, pp: 2}"));
}

TEST(Axes, LaterAxesMoveFaster) {
  const SweepSpec spec = with_axes("  - step.batch: [1, 2]\n  - parallel.tp: [1, 2, 4]\n");
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(leaf_over(spec, "parallel.tp"), ElementsAre(1, 2, 4, 1, 2, 4));
}

// A whole device, then its bandwidth: the other order would undo the axis.
TEST(Axes, BroadPathsAreAppliedBeforeNarrowOnesInAnyOrder) {
  for (const char* axes :
       {"  - device: [toy, toy-wide]\n  - device.memory_bandwidth: [1 TB/s, 8 TB/s]\n",
        "  - device.memory_bandwidth: [1 TB/s, 8 TB/s]\n  - device: [toy, toy-wide]\n"}) {
    std::multiset<std::pair<std::string, double>> got;
    for (const engine::Scenario& point : admitted(with_axes(axes))) {
      got.emplace(point.device.name, point.device.memory_bandwidth.value);
    }
    EXPECT_EQ(got, (std::multiset<std::pair<std::string, double>>{
                       {"toy", 1e12}, {"toy", 8e12}, {"toy-wide", 1e12}, {"toy-wide", 8e12}}));
  }
}

TEST(Axes, LabelsCanBeGiven) {
  const SweepSpec spec = with_axes("  - step.batch: [{value: 1, label: one}, 8]\n");
  EXPECT_THAT(spec.space.label_columns()[0].values, ElementsAre("one", "8"));
}

TEST(Zip, MembersMoveTogether) {
  for (const char* axes : {"  - zip: {parallel.tp: [1, 2, 4], step.context: [1024, 2048, 4096]}\n",
                           "  - zip:\n      - parallel.tp: [1, 2, 4]\n      - step.context: "
                           "{powers_of_two: [1024, 4096]}\n"}) {
    const SweepSpec spec = with_axes(axes);
    EXPECT_THAT(leaf_over(spec, "parallel.tp"), ElementsAre(1, 2, 4));
    EXPECT_THAT(leaf_over(spec, "step.context"), ElementsAre(1024, 2048, 4096));
  }
}

TEST(Zip, ValuesMayRepeat) {
  EXPECT_EQ(
      with_axes(
          "  - zip: {quant.weights: [fp8, int8, int8], quant.activations: [fp8, bf16, int8]}\n")
          .space.size(),
      3U);
}

TEST(Groups, AProductInsideAZip) {
  const SweepSpec spec = with_axes(
      "  - zip:\n"
      "      - product: [{parallel.tp: [1, 2]}, {parallel.pp: [1, 2]}]\n"
      "      - step.batch: [10, 20, 30, 40]\n");
  EXPECT_THAT(leaf_over(spec, "parallel.tp"), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(10, 20, 30, 40));
}

TEST(Concat, SubSweepsFollowEachOther) {
  const SweepSpec spec = toy_sweep(
      "base: {device: toy, model: tiny, step: {batch: 7}}\n"
      "axes:\n"
      "  - quant.kv: [bf16, fp8]\n"
      "  - concat:\n"
      "      - {name: read, base: {step: {phase: prefill}}, axes: [{step.prompt: [128, 256]}]}\n"
      "      - {name: write, base: {step.phase: decode}, axes: [{step.batch: [1, 2, 3]}]}\n");
  EXPECT_EQ(spec.space.size(), 10U);
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(7, 7, 1, 2, 3, 7, 7, 1, 2, 3));
  EXPECT_THAT(leaf_over(spec, "step.phase"), ElementsAre(0, 0, 1, 1, 1, 0, 0, 1, 1, 1));
  const auto points = all_points(spec);
  EXPECT_EQ(label_of(spec, points[0].point, "concat"), "read");
  EXPECT_EQ(label_of(spec, points[4].point, "concat"), "write");
  EXPECT_EQ(label_of(spec, points[4].point, "step.prompt"), "-");
  EXPECT_EQ(label_of(spec, points[4].point, "step.batch"), "3");
}

// Rows of different sub-sweeps could not be told apart otherwise.
TEST(Concat, SubSweepsWithoutNamesAreNumbered) {
  const SweepSpec spec = toy_sweep(
      "base: {device: toy, model: tiny}\n"
      "axes:\n"
      "  - concat: [{base: {step.batch: 1}}, {base: {step.batch: 2}}]\n");
  const auto points = all_points(spec);
  EXPECT_EQ(label_of(spec, points[0].point, "concat"), "1");
  EXPECT_EQ(label_of(spec, points[1].point, "concat"), "2");
}

TEST(Concat, ASubSweepHasItsOwnRequirements) {
  const SweepSpec spec = with_axes(
      "  - concat:\n"
      "      - {axes: [{step.batch: [1, 2, 3]}], require: [\"step.batch > 1\"]}\n"
      "      - [{step.context: [512, 1024]}]\n");
  const auto points = all_points(spec);
  ASSERT_EQ(points.size(), 5U);
  EXPECT_EQ(points[0].admission, Admission::rejected);
  EXPECT_EQ(spec.space.requirements()[std::size_t(points[0].rejected_by)], "step.batch > 1");
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(points[i].admission, Admission::admitted) << i;
}

TEST(Replicates, AreInnermostAndDifferOnlyInTheirNumber) {
  const SweepSpec spec =
      toy_sweep(kToyBase + "axes:\n  - step.batch: [1, 2]\nreplicates: 3\nseed: 5\n");
  EXPECT_THAT(leaf_over(spec, "replicate"), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(leaf_over(spec, "step.batch"), ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(leaf_over(spec, "seed"), Each(5));
}

TEST(Sample, IntervalsChoicesAndWholeSpecs) {
  const SweepSpec spec = with_axes(
      "  - sample:\n"
      "      latin_hypercube: 100\n"
      "      of:\n"
      "        device.clock: [1.2 GHz, 2.6 GHz]\n"
      "        device.multiprocessors: [1, 4]\n"
      "        device.memory_bandwidth: {geometric: [1 TB/s, 16 TB/s]}\n"
      "        quant.kv: [bf16, fp8]\n"
      "        step.batch: {values: [1, 64]}\n"
      "        step.context: {powers_of_two: [1024, 8192]}\n"
      "        model: [tiny, small]\n");
  const auto points = admitted(spec);
  ASSERT_EQ(points.size(), 100U);
  std::map<std::int64_t, int> multiprocessors;
  std::map<std::int64_t, int> batches;
  std::map<std::int64_t, int> contexts;
  std::map<std::string, int> models;
  int below_four = 0;
  for (const engine::Scenario& point : points) {
    EXPECT_GE(point.device.clock.value, 1.2e9);
    EXPECT_LE(point.device.clock.value, 2.6e9);
    ++multiprocessors[point.device.multiprocessors];
    ++batches[point.step.batch];
    ++contexts[point.step.context];
    ++models[point.model.name];
    below_four += point.device.memory_bandwidth.value < 4e12 ? 1 : 0;
  }
  // One point in each of 100 strata: shares of 1/4 and 1/2 come out exactly.
  EXPECT_EQ(multiprocessors, (std::map<std::int64_t, int>{{1, 25}, {2, 25}, {3, 25}, {4, 25}}));
  EXPECT_EQ(batches, (std::map<std::int64_t, int>{{1, 50}, {64, 50}}));
  EXPECT_EQ(contexts,
            (std::map<std::int64_t, int>{{1024, 25}, {2048, 25}, {4096, 25}, {8192, 25}}));
  EXPECT_EQ(models, (std::map<std::string, int>{{"tiny", 50}, {"small", 50}}));
  EXPECT_EQ(below_four, 50);  // half of 1..16 on a log scale
}

TEST(Sample, SeedsDecideAndOrderDoesNot) {
  const auto clocks = [](const std::string& options) {
    return leaf_over(
        with_axes("  - sample: {random: 20, of: {device.clock: [1 GHz, 2 GHz]}" + options + "}\n"),
        "device.clock");
  };
  EXPECT_EQ(clocks(""), clocks(""));
  EXPECT_NE(clocks(""), clocks(", seed: 1"));
  // A path added to a sample moves no other path.
  const auto wider = leaf_over(
      with_axes(
          "  - sample: {random: 20, of: {step.batch: [1, 9], device.clock: [1 GHz, 2 GHz]}}\n"),
      "device.clock");
  EXPECT_EQ(clocks(""), wider);
}

TEST(Sample, PathsMayBeDrawnTogether) {
  const SweepSpec spec = with_axes(
      "  - sample:\n      random: 30\n      of:\n"
      "        step.batch: [1, 2, 4]\n"
      "        step.context: {values: [100, 200, 400], with: step.batch}\n"
      "        device.clock: [1 GHz, 2 GHz]\n");
  const auto batches = leaf_over(spec, "step.batch");
  const auto contexts = leaf_over(spec, "step.context");
  for (std::size_t i = 0; i < batches.size(); ++i) EXPECT_EQ(contexts[i], 100 * batches[i]);
  const auto again = read_sweep_text(spec.resolved, "run.yaml", toy_library());
  ASSERT_TRUE(again.ok()) << engine::to_text(again.mistakes());
  EXPECT_EQ(leaf_over(*again, "step.context"), contexts);

  const auto mistake = [](const std::string& of) {
    const auto read = read_sweep_text(
        "base: {device: toy, model: tiny}\naxes: [sample: {random: 4, of: " + of + "}]\n",
        "test.yaml", toy_library());
    return read ? "" : read.mistakes().front().what;
  };
  EXPECT_EQ(mistake("{step.batch: [1, 2, 4], step.context: {values: [1, 2], with: step.batch}}"),
            "sample: 'step.context' has 2 values, but 'step.batch' has 3");
  EXPECT_EQ(mistake("{step.batch: [1, 2, 4], step.context: {values: [1, 2, 3], with: step.bach}}"),
            "sample: 'with' names no other path that is drawn");
}

TEST(Sample, CrossesOtherAxes) {
  const SweepSpec spec = with_axes(
      "  - sample: {sobol: 4, of: {device.clock: [1 GHz, 2 GHz]}}\n  - step.batch: [1, 2]\n");
  EXPECT_EQ(spec.space.size(), 8U);
  const auto clocks = leaf_over(spec, "device.clock");
  EXPECT_EQ(clocks[0], clocks[1]);
  EXPECT_NE(clocks[1], clocks[2]);
}

}  // namespace
}  // namespace sweep
