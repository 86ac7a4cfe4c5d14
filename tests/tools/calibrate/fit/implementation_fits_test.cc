#include "tools/calibrate/fit/implementation_fits.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/toys.h"
#include "tools/calibrate/errors/engine_calibrations.h"

namespace tools {
namespace {

// Products of two engines: one takes twice the roofline, the other four times.
KernelTable two_engines(const engine::Device& device) {
  KernelTable table{.impls = {"vllm_1.0:a", "trtllm_1.0:b"}};
  const Predictor roofline(device, nullptr);
  for (double m = 1; m <= 4096; m *= 2) {
    for (const double n : {512., 2048., 8192.}) {
      KernelCall call{.family = engine::Family::gemm};
      call[Size::m] = m;
      call[Size::n] = n;
      call[Size::k] = 4096;
      const double least = roofline(call).seconds;
      for (const std::uint32_t impl : {0, 1}) {
        table.records.push_back({.call = call, .impl = impl, .seconds = (2 + 2 * impl) * least});
      }
    }
  }
  return table;
}

TEST(ImplementationFits, ARowIsPredictedByWhatItsOwnKernelMeasured) {
  const engine::Device device = toys::gpu();
  const KernelTable table = two_engines(device);
  CallsByImpl calls;
  add_calls_by_impl(table, "", calls);
  const auto merged = gather_calls(table, {}).value().calls;
  const MeasuredFit plain = fit_measured(merged, device, {});
  std::vector<EngineCalibration> kernels;
  for (const MeasuredFit& fit : fit_implementations(calls, device, plain.calibration, {})) {
    kernels.push_back(
        {fit.calibration.impl, std::make_shared<const engine::Calibration>(fit.calibration)});
  }
  ASSERT_EQ(kernels.size(), 2u);
  TablePredictor predict(device, std::make_shared<const engine::Calibration>(plain.calibration),
                         {.swept = kernels});
  for (const KernelRecord& record : table.records) {
    const std::string& impl = table.impls[record.impl];
    EXPECT_NEAR(predict.of(impl)(record.call).seconds / record.seconds, 1, 1e-6) << impl;
  }
  // A newer version of a kernel is like the one that was measured; a stranger is like their median.
  const KernelRecord& first = table.records.front();
  EXPECT_NEAR(predict.of("vllm_1.1:A")(first.call).seconds / first.seconds, 1, 1e-6);
  EXPECT_NEAR(predict.of("sglang_1.0:c")(first.call).seconds / first.seconds, 1.5, 1e-6);
}

TEST(ImplementationFits, WhatOneKernelMeasuredAloneIsTheDevices) {
  const engine::Device device = toys::gpu();
  KernelTable table = two_engines(device);
  std::erase_if(table.records, [](const KernelRecord& record) { return record.impl == 1; });
  CallsByImpl calls;
  add_calls_by_impl(table, "", calls);
  EXPECT_TRUE(fit_implementations(calls, device, {}, {}).empty());
}

}  // namespace
}  // namespace tools
