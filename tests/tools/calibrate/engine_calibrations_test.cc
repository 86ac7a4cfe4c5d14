#include "tools/calibrate/engine_calibrations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/support/toys.h"

namespace tools {
namespace {

TEST(EngineCalibrations, AnEngineIsWhatItsNameSaysAndALibraryIsNone) {
  EXPECT_EQ(engine_in("vllm_0.24.0:vllm_flash_attn_fa3"), "vllm_0.24.0");
  EXPECT_EQ(engine_in("torch2.11:cublas"), "");
  EXPECT_EQ(engine_in("triton:norm:warm"), "");
  EXPECT_EQ(engine_in(""), "");
}

TEST(EngineCalibrations, VersionsAreOrderedByTheirNumbers) {
  EXPECT_TRUE(older_version("vllm_0.9.1", "vllm_0.14.0"));
  EXPECT_FALSE(older_version("vllm_0.14.0", "vllm_0.9.1"));
  EXPECT_TRUE(older_version("trtllm_1.0.0", "trtllm_1.3.0rc15"));
  EXPECT_TRUE(older_version("trtllm_1.3.0rc15", "trtllm_1.3.0rc20"));
  EXPECT_FALSE(older_version("sglang_0.5.14", "sglang_0.5.14"));
}

// A calibration in which every 16-bit product takes `floor` microseconds and next to nothing else.
SharedCalibration with_floor(double floor) {
  engine::Calibration calibration;
  for (auto& set : calibration.gemm[0]) {
    set.present = true;
    set.fit.floor = floor;
    set.launch = 1;
  }
  return std::make_shared<const engine::Calibration>(calibration);
}

TEST(EngineCalibrations, ARowGetsItsEnginesNearestVersionThatIsNotNewer) {
  const engine::Device device = toys::gpu();
  const TablePredictor predictors(
      device, with_floor(10), {{"vllm_0.14.0", with_floor(20)}, {"vllm_0.24.0", with_floor(30)}});
  KernelCall call{.family = engine::Family::gemm};
  call[Size::m] = call[Size::n] = call[Size::k] = 1;
  const auto floor = [&](std::string_view impl) {
    return std::round(predictors.of(impl)(call).seconds * 1e6);
  };
  EXPECT_EQ(floor("vllm_0.14.0:a"), 20);
  EXPECT_EQ(floor("vllm_0.19.2:a"), 20);
  EXPECT_EQ(floor("vllm_0.24.0:a"), 30);
  EXPECT_EQ(floor("vllm_1.0.0:a"), 30);
  EXPECT_EQ(floor("vllm_0.6.0:a"), 20);
  EXPECT_EQ(floor("sglang_0.5.14:a"), 10);
  EXPECT_EQ(floor("torch2.11:cublas"), 10);
}

}  // namespace
}  // namespace tools
