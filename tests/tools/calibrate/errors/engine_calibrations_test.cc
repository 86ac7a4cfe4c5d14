#include "tools/calibrate/errors/engine_calibrations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/support/toys.h"

namespace tools {
namespace {

// A calibration in which every 16-bit product of the given generation takes `floor` microseconds and next
// to nothing else.
SharedCalibration with_floor(double floor, engine::ParameterSet set) {
  engine::Calibration calibration;
  auto& gemm = calibration.gemm[0].edit(set);
  gemm.fit.floor = floor;
  gemm.launch = 1;
  return std::make_shared<const engine::Calibration>(calibration);
}

double floor_of(TablePredictor& predictors, std::string_view impl) {
  KernelCall call{.family = engine::Family::gemm};
  call[Size::m] = call[Size::n] = call[Size::k] = 1;
  return std::round(predictors.of(impl)(call).seconds * 1e6);
}

constexpr auto kOurs = engine::ParameterSet::hopper, kTheirs = engine::ParameterSet::blackwell;

engine::Device hopper() {
  engine::Device device = toys::gpu();
  device.architecture = "Hopper";
  return device;
}

TEST(EngineCalibrations, ARowGetsItsEnginesVersionElseTheNewest) {
  const engine::Device device = hopper();
  TablePredictor predictors(
      device, with_floor(10, kOurs),
      {.known = {{"vllm_0.14.0", with_floor(20, kOurs)}, {"vllm_0.24.0", with_floor(30, kOurs)}},
       .transfer = with_floor(10, kOurs)});
  EXPECT_EQ(floor_of(predictors, "vllm_0.14.0:a"), 20);
  EXPECT_EQ(floor_of(predictors, "vllm_0.19.2:a"), 30);
  EXPECT_EQ(floor_of(predictors, "vllm_0.24.0:a"), 30);
  EXPECT_EQ(floor_of(predictors, "vllm_1.0.0:a"), 30);
  EXPECT_EQ(floor_of(predictors, "vllm_0.6.0:a"), 30);
  EXPECT_EQ(floor_of(predictors, "sglang_0.5.14:a"), 10);
  EXPECT_EQ(floor_of(predictors, "torch2.11:cublas"), 10);
}

TEST(EngineCalibrations, AVersionThatNeverRanOnTheGenerationLeavesItToOneThatDid) {
  const engine::Device device = hopper();
  TablePredictor predictors(
      device, with_floor(10, kOurs),
      {.known = {{"vllm_0.14.0", with_floor(20, kTheirs)}, {"vllm_0.24.0", with_floor(30, kOurs)}},
       .transfer = with_floor(10, kOurs)});
  EXPECT_EQ(floor_of(predictors, "vllm_0.14.0:a"), 30);
  EXPECT_EQ(floor_of(predictors, "vllm_0.19.2:a"), 30);
}

TEST(EngineCalibrations, AKernelWithParametersOfItsOwnComesBeforeItsEngine) {
  const engine::Device device = hopper();
  TablePredictor predictors(device, with_floor(10, kOurs),
                            {.known = {{"vllm_0.14.0", with_floor(20, kOurs)},
                                       {"vllm_0.14.0:slow", with_floor(50, kOurs)}},
                             .transfer = with_floor(10, kOurs)});
  EXPECT_EQ(floor_of(predictors, "vllm_0.14.0:slow"), 50);
  EXPECT_EQ(floor_of(predictors, "vllm_0.24.0:slow"), 50);
  EXPECT_EQ(floor_of(predictors, "vllm_0.14.0:fast"), 20);
}

TEST(EngineCalibrations, AnotherVersionsIntervalIsWider) {
  const engine::Device device = hopper();
  engine::Calibration known = *with_floor(20, kOurs);
  known.gemm[0].edit(kOurs).high = 1.1;
  TablePredictor predictors(
      device, with_floor(10, kOurs),
      {.known = {{"vllm_0.14.0", std::make_shared<const engine::Calibration>(known)}}});
  KernelCall call{.family = engine::Family::gemm};
  call[Size::m] = call[Size::n] = call[Size::k] = 1;
  EXPECT_GT(predictors.of("vllm_0.24.0:a")(call).hi, 1.1 * predictors.of("vllm_0.14.0:a")(call).hi);
}

}  // namespace
}  // namespace tools
