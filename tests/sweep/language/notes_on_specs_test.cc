// What is said of specs that a sweep writes out itself: parts of them that count nowhere, values that are the same, names that make nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sweep/language/sweep_spec.h"
#include "tests/support/paths.h"

namespace sweep {
namespace {

std::vector<std::string> notes_of(const std::string& text) {
  const auto spec = read_sweep_text(text, "toy.yaml", Library({paths::specs("")}));
  if (!spec) return {engine::to_text(spec.mistakes())};
  const auto again = read_sweep_text(spec->resolved, "run.yaml", Library({paths::specs("")}));
  EXPECT_TRUE(again && again->notes.empty()) << "what is written out names nothing";
  return spec->notes;
}

const std::string kStep = "base: {task: step, model: llama-3.1-8b, ";
const std::string kIdleLink =
    "it counts only where cluster.scale_up.topology is none (this cluster has links of its own in "
    "cluster.scale_up)";

// However deep it is stated, and as a whole link of the library, too.
TEST(NotesOnSpecs, APartOfASpecThatCountsNowhereIsSaid) {
  const std::string named = ", cluster: dgx-h200, parallel: {tp: 8}}\n";
  for (const char* link : {"scale_up: {bandwidth: 9 GB/s}", "scale_up.bandwidth: 9 GB/s"}) {
    EXPECT_EQ(notes_of(kStep + "device: {from: h200-sxm, " + link + "}" + named),
              (std::vector<std::string>{
                  "toy.yaml:1:" + std::string(link[8] == ':' ? "77" : "66") +
                  ": 'device.scale_up.bandwidth' changes nothing here: " + kIdleLink}))
        << link;
  }
  EXPECT_EQ(notes_of(kStep + "device: {from: h200-sxm, scale_up: nvlink-5}" + named),
            (std::vector<std::string>{"toy.yaml:1:66: 'device.scale_up' changes nothing here: " +
                                      kIdleLink}));
  EXPECT_TRUE(notes_of(kStep + "device: {from: h200-sxm, scale_up: nvlink-5}, parallel: {tp: 8}}\n")
                  .empty());
}

TEST(NotesOnSpecs, ValuesThatDifferInNothingThatCountsAreTheSame) {
  const std::string axes =
      "axes: [device: [h200-sxm, {from: h200-sxm, scale_up: {bandwidth: 900 GB/s}}]]\n";
  const auto same = notes_of(
      "base: {task: step, model: llama-3.1-8b, cluster: dgx-h200, parallel: {tp: 8}}\n" + axes);
  ASSERT_EQ(same.size(), 1U);
  EXPECT_NE(same[0].find("are the same device here: 'device.scale_up.bandwidth' changes nothing"),
            std::string::npos)
      << same[0];
  EXPECT_TRUE(
      notes_of("base: {task: step, model: llama-3.1-8b, parallel: {tp: 8}}\n" + axes).empty());
}

// Who describes a chip gives it a name. What he states beside it is looked at all the same.
TEST(NotesOnSpecs, AChipOfOnesOwnHidesNothing) {
  const auto notes = notes_of(kStep +
                              "train: {zero: 3}, device: {name: mine, multiprocessors: 64, clock: "
                              "1.5 GHz, peak: {bf16: 500 "
                              "TFLOP/s}, memory_capacity: 96 GB, memory_bandwidth: 3 TB/s}}\n");
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("'train.zero' changes nothing here"), std::string::npos) << notes[0];
}

TEST(NotesOnSpecs, ANameMakesNoNewDevice) {
  const std::string mine = "{name: mine, multiprocessors: 64}";
  const std::string said =
      "'mine' is a name and makes no new device: what is not stated beside it stays as it was (of "
      "a device its links, rent, powers and calibration too); 'from: {}' starts from nothing";
  for (const std::string& axes : {"device: [h200-sxm, " + mine + "]",
                                  "concat: [{name: a}, {name: b, base: {device: " + mine + "}}]"}) {
    const auto notes = notes_of(kStep + "device: h100-sxm}\naxes: [" + axes + "]\n");
    ASSERT_EQ(notes.size(), 1U) << axes;
    EXPECT_NE(notes[0].find(said), std::string::npos) << notes[0];
  }
  EXPECT_TRUE(notes_of(kStep +
                       "device: h100-sxm}\naxes: [device: [h200-sxm, {from: h200-sxm, name: "
                       "mine, multiprocessors: 64}]]\n")
                  .empty());
}

}  // namespace
}  // namespace sweep
