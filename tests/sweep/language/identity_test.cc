// Which points of sweeps are one point: keys with the calibrations that ship, and with more beside them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "engine/calibration/calibration.h"
#include "engine/evaluate.h"
#include "tests/support/toy_rows.h"
#include "tests/support/toys.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

std::vector<Point> points_of(const SweepSpec& spec) {
  std::vector<Point> points;
  for (BuiltPoint& built : all_points(spec)) points.push_back(std::move(built.point));
  return points;
}

TEST(Identity, ARenamedDeviceIsTheSamePoint) {
  const auto spec = read_sweep_text(
      "base: {task: step, host: none, model: llama-3.1-8b, step: {batch: 440, context: 512}}\n"
      "axes: [{device: [h200-sxm, {from: h200-sxm, name: my-h200}, "
      "{from: h200-sxm, name: faster, memory_bandwidth: 5 TB/s}, "
      "{from: h200-sxm, memory_bandwidth: 5 TB/s}]}]\n",
      "rename.yaml", Library({paths::specs()}));
  ASSERT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
  const std::vector<Point> points = points_of(*spec);
  std::vector<engine::Outcome> outcomes;
  for (const Point& point : points) {
    outcomes.push_back(engine::evaluate(point.scenario, *spec->resources));
  }
  EXPECT_EQ(points[0].key, points[1].key);
  EXPECT_EQ(outcomes[0].metrics.step_time, outcomes[1].metrics.step_time);
  EXPECT_EQ(outcomes[0].tier, outcomes[1].tier);
  EXPECT_EQ(points[2].key, points[3].key);
  EXPECT_EQ(outcomes[2].metrics.step_time, outcomes[3].metrics.step_time);
  EXPECT_NE(points[0].key, points[2].key);
  // Faster memory, and the same kernels behind it: faster, and less sure.
  EXPECT_LT(outcomes[2].metrics.step_time, outcomes[0].metrics.step_time);
  EXPECT_GT(outcomes[0].tier, outcomes[2].tier);
}

class LibraryOfOne : public testing::Test {
 protected:
  LibraryOfOne() { std::filesystem::create_directories(calibrations()); }

  std::filesystem::path calibrations() const { return folder_.path() / "calibration"; }
  void add(const std::string& name, const engine::Calibration& calibration) {
    std::ofstream(calibrations() / (name + ".calibration"))
        << engine::write_calibration(calibration);
  }
  std::vector<Point> read() {
    const auto spec = read_sweep_text(
        "base: {device: toy, model: tiny}\n"
        "axes: [{calibration.tier: [roofline, best]}, {step.batch: [1, 2]}]\n",
        (folder_.path() / "toy.yaml").string(), Library({folder_.path(), fixtures() / "specs"}));
    EXPECT_TRUE(spec.ok()) << engine::to_text(spec.mistakes());
    return spec ? points_of(*spec) : std::vector<Point>(4);
  }

  tests::TemporaryFolder folder_;
};

engine::Calibration transfer_with(double floor) {
  engine::Calibration calibration;
  calibration.name = "transfer";
  calibration.tier = engine::Tier::transfer;
  auto& set = calibration.gemm[0].edit(engine::ParameterSet::pooled);
  set.high = floor;
  return calibration;
}

TEST_F(LibraryOfOne, AddingACalibrationMovesNoKeyThatDoesNotReadIt) {
  add("transfer", transfer_with(1.5));
  const std::vector<Point> before = read();

  engine::Calibration swept = transfer_with(1.25);
  swept.name = swept.device = "elsewhere";
  swept.tier = engine::Tier::measured;
  swept.measured_on = toys::gpu();
  add("elsewhere", swept);
  const std::vector<Point> beside = read();
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(beside[i].key, before[i].key) << i;
    EXPECT_NE(beside[i].scenario.calibration.checksum, before[i].scenario.calibration.checksum);
  }

  add("transfer", transfer_with(1.75));
  const std::vector<Point> changed = read();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool reads = before[i].scenario.calibration.tier == engine::TierChoice::best;
    EXPECT_EQ(changed[i].key == before[i].key, !reads) << i;
  }
}

}  // namespace
}  // namespace sweep
