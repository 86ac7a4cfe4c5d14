#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string_view>

#include "engine/base/checksum.h"
#include "engine/calibration/calibration.h"
#include "engine/calibration/calibrations.h"
#include "engine/evaluate.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// One family, two points: what every line of the format looks like.
Calibration small() {
  Calibration calibration;
  calibration.name = "toy";
  calibration.tier = Tier::measured;
  calibration.device = "toy";
  calibration.source = "swept on a bench";
  calibration.fit_error = "none";
  FittedSet<PassFit>& set =
      calibration.pass[static_cast<std::size_t>(Pass::norm)].edit(ParameterSet::own);
  set.tier = Tier::measured;
  set.fit = {.floor = 2.5, .memory_share = 0.9, .cache_rate = 0.25, .cache_share = 0.5};
  set.low = 0.9;
  set.high = 1.125;
  set.launch = 2;
  set.envelope.known = true;
  set.envelope.low = {1, 1024, 0};
  set.envelope.high = {4096, 65536, 1};
  set.points = PointSet({{coordinates(1, 1024, 0), 0.125}, {coordinates(4096, 65536, 1), -0.25}},
                        coordinates_for<PassFit>());
  return calibration;
}

// Pins the format: a change here is a change of kCalibrationFormat.
constexpr const char* kText =
    "llmsweep calibration 2\n"
    "name: toy\n"
    "tier: measured\n"
    "model_version: 4\n"
    "device: toy\n"
    "source: swept on a bench\n"
    "fit_error: none\n"
    "checksum: CHECKSUM\n"
    "section pass/norm/own\n"
    "floor: 2.5\n"
    "memory_share: 0.9\n"
    "cache_rate: 0.25\n"
    "cache_share: 0.5\n"
    "row_clocks: 0\n"
    "overlap_power: 1\n"
    "cold_start: 0\n"
    "low: 0.9\n"
    "high: 1.125\n"
    "launch: 2\n"
    "envelope rows: 1 4096\n"
    "envelope row_bytes: 1024 65536\n"
    "envelope cold: 0 1\n"
    "line: 1024 0 : 1 0.125\n"
    "line: 65536 1 : 4096 -0.25\n";

// The text with its right checksum, or the one given.
std::string stamped(std::string text, std::string checksum = "") {
  const std::size_t start = text.find("checksum: ");
  const std::size_t end = text.find('\n', start) + 1;
  if (checksum.empty()) checksum = checksum_of(text.substr(0, start) + text.substr(end));
  return text.replace(start, end - start, "checksum: " + checksum + "\n");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

std::string mistakes_of(const std::string& text) {
  const auto read = parse_calibration(text, "toy.calibration");
  EXPECT_FALSE(read.ok());
  return to_text(read.mistakes());
}

TEST(CalibrationText, IsOneValueALine) { EXPECT_EQ(write_calibration(small()), stamped(kText)); }

// One tree and two lines of products.
std::string products_text() {
  std::string text = stamped(kText);
  text.erase(text.find("section "));
  text += "section gemm/bf16/own\n";
  const GemmFit plain;
  each_parameter(plain, [&text](const auto& parameter, double value) {
    text += std::string(parameter.name) + ": " + (value == 0 ? "0" : "1") + "\n";
  });
  text += "low: 0.9\nhigh: 1.1\nlaunch: 2\ntrees: 132\n";
  text += "tree: 0 16.5 1 4096 0 100 0 200 0 300 5 0.875";
  for (int leaf = 0; leaf < 64; ++leaf) text += " " + std::to_string(10 * leaf - 100);
  text +=
      "\nline: 4096 4096 1 0 : 16 0.125 32 0.25\n"
      "line: 8192 4096 1 0 : 16 0.5\n";
  return text;
}

TEST(CalibrationText, TreesAndLinesOfPointsAreOneLineEach) {
  const std::string text = stamped(products_text());
  const auto read = parse_calibration(text, "toy.calibration");
  ASSERT_TRUE(read.ok()) << to_text(read.mistakes());
  EXPECT_EQ(write_calibration(*read), text);
  const PointSet& points = read->gemm[0].find(ParameterSet::own)->points;
  EXPECT_EQ(points.points().size(), 3u);
  EXPECT_EQ(points.trees().size(), 1u);
  EXPECT_EQ(points.trees().features, Features::product);
  EXPECT_NEAR(points.residual_at(coordinates(32, 4096, 4096, 1, 0)), 0.25, 1e-15);
}

TEST(CalibrationText, OlderFilesHaveAPointALine) {
  const std::string older =
      replaced(replaced(kText, "line: 1024 0 : 1 0.125", "point: 1 1024 0 0.125"),
               "line: 65536 1 : 4096 -0.25", "point: 4096 65536 1 -0.25");
  const auto read = parse_calibration(stamped(older), "toy.calibration");
  ASSERT_TRUE(read.ok()) << to_text(read.mistakes());
  EXPECT_EQ(write_calibration(*read), stamped(kText));
}

TEST(CalibrationText, BrokenTreesAndLinesAreRefused) {
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"trees: 132\n", "trees: many\n", "trees: 'many' in section gemm/bf16/own"},
      {"trees: 132\n", "", "tree: not 6 features with limits and 64 whole leaves"},
      {"tree: 0 16.5", "tree: 32 16.5", "tree: not 6 features with limits and 64 whole leaves"},
      {" -100 -90", " -100.5 -90", "tree: not 6 features with limits and 64 whole leaves"},
      {" -100 -90", " -90", "tree: not 6 features with limits and 64 whole leaves"},
      {"line: 8192 4096 1 0 : 16 0.5", "line: 8192 4096 1 : 16 0.5",
       "line: not 4 numbers, ':' and the pairs of measured calls"},
      {"line: 8192 4096 1 0 : 16 0.5", "line: 8192 4096 1 0 : 16",
       "line: not 4 numbers, ':' and the pairs of measured calls"},
      {"line: 8192 4096 1 0 : 16 0.5", "line: 8192 4096 1 0",
       "line: not 4 numbers, ':' and the pairs of measured calls"},
  };
  for (const auto& [from, to, message] : cases) {
    const std::string said = mistakes_of(stamped(replaced(products_text(), from, to)));
    EXPECT_NE(said.find(message), std::string::npos) << said;
  }
}

TEST(CalibrationText, ReadsBackWhatItWrote) {
  const auto read = parse_calibration(write_calibration(small()), "toy.calibration");
  ASSERT_TRUE(read.ok()) << to_text(read.mistakes());
  EXPECT_EQ(write_calibration(*read), write_calibration(small()));
  EXPECT_EQ(read->checksum.size(), 16u);
  const auto& set = *read->pass[static_cast<std::size_t>(Pass::norm)].find(ParameterSet::own);
  EXPECT_EQ(set.tier, Tier::measured);
  EXPECT_EQ(set.points.points().size(), 2u);
  EXPECT_TRUE(set.envelope.contains(coordinates(16, 4096, 0)));
  EXPECT_FALSE(set.envelope.contains(coordinates(8192, 4096, 0)));
}

TEST(CalibrationText, TheShippedFileReadsBack) {
  const std::string text = toys::file_text(paths::specs("calibration/transfer.calibration"));
  EXPECT_EQ(write_calibration(toys::transfer()), text);
}

// The text of small() as format 1 had it.
std::string former_text() {
  std::string text = replaced(kText, "calibration 2", "calibration 1");
  const Calibration calibration = small();
  const auto& set = *calibration.pass[static_cast<std::size_t>(Pass::norm)].find(ParameterSet::own);
  each_parameter(set.fit, [&text](const auto& parameter, double) {
    text = replaced(text, "\n" + std::string(parameter.name) + ": ",
                    "\n" + std::string(parameter.former) + ": ");
  });
  return stamped(text);
}

TEST(CalibrationText, PutIntoOtherWordsItKeepsItsIdentity) {
  const auto former = parse_calibration(former_text(), "toy.calibration");
  ASSERT_TRUE(former.ok()) << to_text(former.mistakes());
  const std::string today = write_calibration(*former);
  EXPECT_EQ(today, stamped(replaced(
                       kText, "checksum: ", "identity: " + former->checksum + "\nchecksum: ")));
  const auto again = parse_calibration(today, "toy.calibration");
  ASSERT_TRUE(again.ok()) << to_text(again.mistakes());
  EXPECT_EQ(again->identity, former->identity);
  EXPECT_EQ(again->checksum, former->checksum);
  EXPECT_EQ(write_calibration(*again), today);
}

// A word that explains itself is longer than a symbol and says its meaning in a sentence of its own.
TEST(CalibrationText, EveryParameterHasAWordAMeaningAndARangeAroundItsStart) {
  Calibration calibration;
  Calibration::sections(calibration, [](const std::string& section, auto& sets) {
    std::set<std::string_view> names, former;
    each_parameter(sets.edit(ParameterSet::own).fit, [&](const auto& parameter, double value) {
      EXPECT_TRUE(names.insert(parameter.name).second) << section << " " << parameter.name;
      EXPECT_TRUE(former.insert(parameter.former).second) << section << " " << parameter.former;
      EXPECT_GE(parameter.name.size(), 4u) << section << " " << parameter.name;
      EXPECT_GE(parameter.meaning.size(), 15u) << section << " " << parameter.name;
      EXPECT_TRUE(std::isfinite(value));
      if (parameter.search.empty()) return;
      EXPECT_LT(parameter.search.low, parameter.search.high) << section << " " << parameter.name;
      EXPECT_GE(parameter.search.start, parameter.search.low) << section << " " << parameter.name;
      EXPECT_LE(parameter.search.start, parameter.search.high) << section << " " << parameter.name;
    });
  });
}

TEST(Calibration, CopiesShareTheirSetsUntilOneIsChanged) {
  const Calibration first = small();
  Calibration second = first;
  auto& sets = second.pass[static_cast<std::size_t>(Pass::norm)];
  const auto& before = first.pass[static_cast<std::size_t>(Pass::norm)];
  EXPECT_EQ(sets.find(ParameterSet::own), before.find(ParameterSet::own));
  sets.edit(ParameterSet::own).fit.floor = 7;
  EXPECT_EQ(before.find(ParameterSet::own)->fit.floor, 2.5);
  EXPECT_EQ(sets.find(ParameterSet::own)->fit.floor, 7);
  // A set that nobody shares stays where it is.
  const auto* changed = sets.find(ParameterSet::own);
  sets.edit(ParameterSet::own).fit.floor = 8;
  EXPECT_EQ(sets.find(ParameterSet::own), changed);
}

TEST(CalibrationText, AnEditedFileIsRefused) {
  const std::string edited =
      replaced(write_calibration(small()), "memory_share: 0.9", "memory_share: 1.0");
  const std::string stated = small().checksum;
  const std::string text = mistakes_of(edited);
  EXPECT_NE(text.find("toy.calibration:8:1: error: checksum "), std::string::npos) << text;
  EXPECT_NE(text.find("does not match the file's contents"), std::string::npos) << text;
  EXPECT_NE(
      text.find("hint: the file was edited or cut off; make it anew with 'llmsweep calibrate'"),
      std::string::npos)
      << text;
  // A cut-off file is an edited one.
  const std::string whole = write_calibration(small());
  EXPECT_NE(mistakes_of(whole.substr(0, whole.size() - 10)).find("does not match"),
            std::string::npos);
}

TEST(CalibrationText, AnotherFormatOrModelIsRefused) {
  EXPECT_EQ(mistakes_of(replaced(stamped(kText), "calibration 2", "calibration 7")),
            "toy.calibration:1:1: error: calibration format 7; this program reads formats 1 and 2\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n");
  EXPECT_EQ(
      mistakes_of(stamped(replaced(kText, "model_version: 4", "model_version: 1"))),
      "toy.calibration:4:1: error: made for kernel forms of version 1; this program has version 4\n"
      "  hint: make the file anew with 'llmsweep calibrate'\n");
  EXPECT_EQ(mistakes_of("name: toy\n"),
            "toy.calibration:1:1: error: not a calibration\n"
            "  hint: calibrations are written by 'llmsweep calibrate'\n");
  EXPECT_EQ(mistakes_of(""),
            "toy.calibration:1:1: error: not a calibration\n"
            "  hint: calibrations are written by 'llmsweep calibrate'\n");
}

TEST(CalibrationText, EveryMistakeIsNamedWithItsLine) {
  std::string text = kText;
  text = replaced(text, "memory_share: 0.9\n", "memory_share: fast\n");
  text = replaced(text, "cache_rate: 0.25\n", "cl3: 0.25\n");
  text = replaced(text, "line: 1024 0 : 1 0.125\n", "point: 1 1024\n");
  text = replaced(text, "envelope row_bytes: 1024 65536\n", "envelope size: 1 2\n");
  text += "section pass/nothing/own\n";
  EXPECT_EQ(mistakes_of(stamped(text)),
            "toy.calibration:11:1: error: memory_share: 'fast' is not a number\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:12:1: error: unknown key 'cl3' in section pass/norm/own\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:21:1: error: unknown coordinate 'size' in section pass/norm/own\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:23:1: error: point: '1 1024' is not 4 numbers\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:9:1: error: section pass/norm/own has no 'memory_share'\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:9:1: error: section pass/norm/own has no 'cache_rate'\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:25:1: error: unknown section 'pass/nothing/own'\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n");
}

TEST(Calibrations, ASweepIsCompletedByTransfer) {
  const Calibration both = completed_by(small(), toys::transfer());
  const std::size_t norm = static_cast<std::size_t>(Pass::norm);
  EXPECT_EQ(both.pass[norm].find(ParameterSet::own)->tier, Tier::measured);
  EXPECT_EQ(both.gemm[0].find(ParameterSet::hopper)->tier, Tier::transfer);
  // Its text stays its own.
  EXPECT_EQ(write_calibration(both), write_calibration(small()));
}

TEST(Calibrations, BestIsMeasuredThenTransferThenRoofline) {
  Calibrations have;
  Device toy, other;
  toy.name = "toy";
  other.name = "else";
  EXPECT_EQ(choose_calibration({}, toy, have).calibration, nullptr);
  EXPECT_FALSE(choose_calibration({}, toy, have).missing);
  EXPECT_TRUE(choose_calibration({TierChoice::transfer}, toy, have).missing);
  have.by_name["transfer"] = std::make_shared<Calibration>(toys::transfer());
  EXPECT_EQ(choose_calibration({}, toy, have).calibration, have.find("transfer"));
  have.by_name["toy"] = std::make_shared<Calibration>(small());
  EXPECT_EQ(choose_calibration({}, toy, have).calibration, have.find("toy"));
  EXPECT_EQ(choose_calibration({TierChoice::measured, "toy"}, other, have).calibration,
            have.find("toy"));
  EXPECT_TRUE(choose_calibration({TierChoice::measured}, other, have).missing);
  EXPECT_EQ(choose_calibration({TierChoice::roofline}, toy, have).calibration, nullptr);
}

TEST(Calibrations, AnEnginesKernelsStandInForWellMadeOnes) {
  Calibrations have;
  Device toy;
  toy.name = "toy";
  have.by_name["transfer"] = std::make_shared<Calibration>(toys::transfer());
  EXPECT_TRUE(choose_calibration({.engine = "vllm_0"}, toy, have).missing);
  have.by_engine["vllm_0"] = std::make_shared<Calibration>(toys::transfer());
  EXPECT_EQ(choose_calibration({.engine = "vllm_0"}, toy, have).calibration,
            have.find_engine("vllm_0"));
  have.by_name["toy"] = std::make_shared<Calibration>(small());
  EXPECT_EQ(choose_calibration({.engine = "vllm_0"}, toy, have).calibration, have.find("toy"));
}

TEST(Calibrations, AStepSaysWhichTierItHas) {
  Resources resources;
  resources.calibrations.by_name["transfer"] = std::make_shared<Calibration>(toys::transfer());
  Scenario scenario = toys::scenario();
  scenario.device.architecture = "Hopper";
  const Outcome roofline = evaluate(scenario);
  const Outcome transfer = evaluate(scenario, resources);
  ASSERT_EQ(transfer.status, Status::ok) << transfer.reason;
  EXPECT_GT(transfer.metrics.step_time, roofline.metrics.step_time);
  for (const KernelRow& row : transfer.kernels) {
    if (row.family == Family::gemm) {
      EXPECT_EQ(row.tier, Tier::transfer);
    }
    EXPECT_LE(row.work.low, row.work.time);
    EXPECT_GE(row.work.high, row.work.time);
  }
  scenario.calibration.tier = TierChoice::roofline;
  EXPECT_EQ(evaluate(scenario, resources).metrics.step_time, roofline.metrics.step_time);
  scenario.calibration.tier = TierChoice::measured;
  const Outcome missing = evaluate(scenario, resources);
  EXPECT_EQ(missing.status, Status::unsupported);
  EXPECT_EQ(missing.reason,
            "calibration.tier measured: no calibration was measured on such a device");
}

}  // namespace
}  // namespace engine
