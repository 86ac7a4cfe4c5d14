#include <gtest/gtest.h>

#include "engine/base/checksum.h"
#include "engine/calibration/calibration.h"
#include "engine/calibration/calibrations.h"
#include "engine/evaluate.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

std::size_t at(ParameterSet set) { return static_cast<std::size_t>(set); }

// One family, two points: what every line of the format looks like.
Calibration small() {
  Calibration calibration;
  calibration.name = "toy";
  calibration.tier = Tier::measured;
  calibration.device = "toy";
  calibration.source = "swept on a bench";
  calibration.fit_error = "none";
  FittedSet<PassFit>& set =
      calibration.pass[static_cast<std::size_t>(Pass::norm)][at(ParameterSet::own)];
  set.present = true;
  set.tier = Tier::measured;
  set.fit = {.floor = 2.5, .eta = 0.9, .cl2 = 0.25, .l2c = 0.5};
  set.low = 0.9;
  set.high = 1.125;
  set.launch = 2;
  set.envelope.known = true;
  set.envelope.low = {1, 1024};
  set.envelope.high = {4096, 65536};
  set.points = PointSet({{coordinates(1, 1024), 0.125}, {coordinates(4096, 65536), -0.25}},
                        kPassCoordinates);
  return calibration;
}

// Pins the format: a change here is a change of kCalibrationFormat.
constexpr const char* kText =
    "llmsweep calibration 1\n"
    "name: toy\n"
    "tier: measured\n"
    "model_version: 3\n"
    "device: toy\n"
    "source: swept on a bench\n"
    "fit_error: none\n"
    "checksum: CHECKSUM\n"
    "section pass/norm/own\n"
    "floor: 2.5\n"
    "eta: 0.9\n"
    "cl2: 0.25\n"
    "l2c: 0.5\n"
    "cr: 0\n"
    "pn: 1\n"
    "lc: 0\n"
    "low: 0.9\n"
    "high: 1.125\n"
    "launch: 2\n"
    "envelope rows: 1 4096\n"
    "envelope row_bytes: 1024 65536\n"
    "point: 1 1024 0.125\n"
    "point: 4096 65536 -0.25\n";

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

TEST(CalibrationText, ReadsBackWhatItWrote) {
  const auto read = parse_calibration(write_calibration(small()), "toy.calibration");
  ASSERT_TRUE(read.ok()) << to_text(read.mistakes());
  EXPECT_EQ(write_calibration(*read), write_calibration(small()));
  EXPECT_EQ(read->checksum.size(), 16u);
  const auto& set = read->pass[static_cast<std::size_t>(Pass::norm)][at(ParameterSet::own)];
  EXPECT_EQ(set.tier, Tier::measured);
  EXPECT_EQ(set.points.points().size(), 2u);
  EXPECT_TRUE(set.envelope.contains(coordinates(16, 4096)));
  EXPECT_FALSE(set.envelope.contains(coordinates(8192, 4096)));
}

TEST(CalibrationText, TheShippedFileReadsBack) {
  const std::string text = toys::file_text(LLMSWEEP_SPECS_DIR "/calibration/transfer.calibration");
  EXPECT_EQ(write_calibration(toys::transfer()), text);
}

TEST(CalibrationText, AnEditedFileIsRefused) {
  const std::string edited = replaced(write_calibration(small()), "eta: 0.9", "eta: 1.0");
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
  EXPECT_EQ(mistakes_of(replaced(stamped(kText), "calibration 1", "calibration 7")),
            "toy.calibration:1:1: error: calibration format 7; this program reads format 1\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n");
  EXPECT_EQ(mistakes_of(stamped(replaced(kText, "model_version: 3", "model_version: 1"))),
            "toy.calibration:4:1: error: made for model version 1; this program is version 3\n"
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
  text = replaced(text, "eta: 0.9\n", "eta: fast\n");
  text = replaced(text, "cl2: 0.25\n", "cl3: 0.25\n");
  text = replaced(text, "point: 1 1024 0.125\n", "point: 1 1024\n");
  text = replaced(text, "envelope row_bytes: 1024 65536\n", "envelope size: 1 2\n");
  text += "section pass/nothing/own\n";
  EXPECT_EQ(mistakes_of(stamped(text)),
            "toy.calibration:11:1: error: eta: 'fast' is not a number\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:12:1: error: unknown key 'cl3' in section pass/norm/own\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:21:1: error: unknown coordinate 'size' in section pass/norm/own\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:22:1: error: point: '1 1024' is not 3 numbers\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:9:1: error: section pass/norm/own has no 'eta'\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:9:1: error: section pass/norm/own has no 'cl2'\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n"
            "toy.calibration:24:1: error: unknown section 'pass/nothing/own'\n"
            "  hint: make the file anew with 'llmsweep calibrate'\n");
}

TEST(Calibrations, ASweepIsCompletedByTransfer) {
  const Calibration both = completed_by(small(), toys::transfer());
  const std::size_t norm = static_cast<std::size_t>(Pass::norm);
  EXPECT_EQ(both.pass[norm][at(ParameterSet::own)].tier, Tier::measured);
  EXPECT_EQ(both.gemm[0][at(ParameterSet::hopper)].tier, Tier::transfer);
  // Its text stays its own.
  EXPECT_EQ(write_calibration(both), write_calibration(small()));
}

TEST(Calibrations, BestIsMeasuredThenTransferThenRoofline) {
  Calibrations have;
  EXPECT_EQ(choose_calibration(TierChoice::best, "", "toy", have).calibration, nullptr);
  EXPECT_FALSE(choose_calibration(TierChoice::best, "", "toy", have).missing);
  EXPECT_TRUE(choose_calibration(TierChoice::transfer, "", "toy", have).missing);
  have.by_name["transfer"] = std::make_shared<Calibration>(toys::transfer());
  EXPECT_EQ(choose_calibration(TierChoice::best, "", "toy", have).calibration,
            have.find("transfer"));
  have.by_name["toy"] = std::make_shared<Calibration>(small());
  EXPECT_EQ(choose_calibration(TierChoice::best, "", "toy", have).calibration, have.find("toy"));
  EXPECT_EQ(choose_calibration(TierChoice::measured, "toy", "else", have).calibration,
            have.find("toy"));
  EXPECT_TRUE(choose_calibration(TierChoice::measured, "", "else", have).missing);
  EXPECT_EQ(choose_calibration(TierChoice::roofline, "", "toy", have).calibration, nullptr);
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
    EXPECT_LE(row.low, row.time);
    EXPECT_GE(row.high, row.time);
  }
  scenario.calibration.tier = TierChoice::roofline;
  EXPECT_EQ(evaluate(scenario, resources).metrics.step_time, roofline.metrics.step_time);
  scenario.calibration.tier = TierChoice::measured;
  const Outcome missing = evaluate(scenario, resources);
  EXPECT_EQ(missing.status, Status::unsupported);
  EXPECT_EQ(missing.reason, "calibration.tier measured: no such calibration is loaded for toy");
}

}  // namespace
}  // namespace engine
