#include "tools/calibrate/fit/correction_trees.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/kernels/kernel_time.h"
#include "engine/kernels/own_slot.h"
#include "tests/support/toys.h"
#include "tools/calibrate/tables/predict.h"

namespace tools {
namespace {

engine::Device swept() {
  engine::Device device = toys::gpu();
  device.architecture = "Hopper";
  return device;
}

// A form of products, and calls of an engine that takes half as long again where k is long.
class CorrectionTrees : public testing::Test {
 protected:
  CorrectionTrees() {
    slot =
        engine::own_slot(calibration, engine::Family::gemm, product(1, 1024, 1024), device).facts;
    const Predictor form(device, &calibration);
    for (double n = 512; n <= 8192; n += 512) {
      for (const double k : {1024., 2048., 4096., 6144., 8192.}) {
        for (double m = 1; m <= 4096; m *= 2) {
          const engine::Op op = product(m, n, k);
          const double slower = k > 5000 ? 1.5 : 1;
          samples.push_back(
              {engine::Family::gemm, op, &device, slower * form(engine::Family::gemm, op).seconds});
        }
      }
    }
  }

  static engine::Gemm product(double m, double n, double k) {
    return {.m = std::int64_t(m), .n = std::int64_t(n), .k = std::int64_t(k)};
  }

  engine::Device device = swept();
  engine::Calibration calibration;
  engine::SetFacts* slot = nullptr;
  std::vector<Sample> samples;
};

TEST_F(CorrectionTrees, AnEnginesRuleIsLearnedAndHoldsForShapesItDidNotSee) {
  const std::vector<Scored> unseen = add_trees(calibration, samples);
  ASSERT_EQ(unseen.size(), samples.size());
  EXPECT_LT(error_summary(unseen).mean,
            0.08);  // without the trees: a fifth of the calls by a third
  const Predictor corrected(device, &calibration);
  for (const Sample& sample : samples) {
    EXPECT_NEAR(corrected(sample.family, sample.op).seconds / sample.seconds, 1, 0.05);
  }
}

TEST_F(CorrectionTrees, ARelativeGetsTheRuleAtItsOwnRates) {
  engine::Device relative = device;
  relative.memory_bandwidth *= 2;
  const engine::Op op = product(1, 8192, 8192);
  const double plain = Predictor(relative, &calibration)(engine::Family::gemm, op).seconds;
  add_trees(calibration, samples);
  const double corrected = Predictor(relative, &calibration)(engine::Family::gemm, op).seconds;
  EXPECT_NEAR(corrected / plain, 1.5, 0.1);
}

}  // namespace
}  // namespace tools
