#include "tools/calibrate/fit/measured_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/toys.h"
#include "tools/calibrate/tables/predict.h"
#include "tools/calibrate/tables/table_checks.h"

namespace tools {
namespace {

// Products that take twice their roofline and a little more at some sizes.
std::vector<MeasuredCall> toy_calls(const engine::Device& device) {
  std::vector<MeasuredCall> calls;
  const Predictor roofline(device, nullptr);
  for (double m = 1; m <= 4096; m *= 4) {
    for (const double n : {512., 2048., 8192.}) {
      MeasuredCall measured{.call = {.family = engine::Family::gemm}};
      measured.call[Size::m] = m;
      measured.call[Size::n] = n;
      measured.call[Size::k] = 4096;
      measured.seconds = roofline(measured.call).seconds * (2 + 0.2 * std::sin(m + n));
      calls.push_back(measured);
    }
  }
  return calls;
}

TEST(MeasuredFit, ReturnsMeasuredCallsExactlyAfterWritingAndReading) {
  const engine::Device device = toys::gpu();
  const auto calls = toy_calls(device);
  const MeasuredFit fit = fit_measured(calls, device, {});
  ASSERT_EQ(fit.errors.size(), 1);
  EXPECT_EQ(fit.errors[0].section, "gemm/bf16");
  const auto read = engine::parse_calibration(engine::write_calibration(fit.calibration), "toy");
  ASSERT_TRUE(read) << engine::to_text(read.mistakes());
  const Predictor predict(device, &*read);
  for (const MeasuredCall& measured : calls) {
    const Prediction prediction = predict(measured.call);
    EXPECT_NEAR(prediction.seconds / measured.seconds, 1, 1e-9);
    EXPECT_EQ(prediction.tier, engine::Tier::measured);
    EXPECT_FALSE(prediction.extrapolated);
  }
}

TEST(MeasuredFit, CallsOutsideTheSweepAreFlagged) {
  const engine::Device device = toys::gpu();
  const MeasuredFit fit = fit_measured(toy_calls(device), device, {});
  MeasuredCall outside = toy_calls(device).front();
  outside.call[Size::n] = 1 << 20;
  EXPECT_TRUE(Predictor(device, &fit.calibration)(outside.call).extrapolated);
}

TEST(MeasuredFit, OneCallIsNoSweep) {
  const engine::Device device = toys::gpu();
  const MeasuredFit fit = fit_measured({toy_calls(device).front()}, device, {});
  EXPECT_TRUE(fit.errors.empty());
  EXPECT_THAT(fit.left_out, testing::ElementsAre("gemm/bf16: 1 calls, and at least 12 are needed"));
}

TEST(UnitMistakes, MillisecondsAndMicrosecondsAreNoticed) {
  const engine::Device device = toys::gpu();
  KernelTable table;
  table.text = results::parse_csv("family,seconds\ngemm,1\n", "t.csv").value();
  for (const MeasuredCall& measured : toy_calls(device)) {
    table.records.push_back({.call = measured.call, .seconds = measured.seconds});
  }
  EXPECT_TRUE(unit_mistakes(table, device).empty());
  for (KernelRecord& record : table.records) record.seconds *= 1e3;
  ASSERT_EQ(unit_mistakes(table, device).size(), 1);
  EXPECT_THAT(unit_mistakes(table, device)[0].hint, testing::HasSubstr("milliseconds"));
  EXPECT_EQ(unit_mistakes(table, device)[0].where, (engine::Location{"t.csv", 2, 6}));
  for (KernelRecord& record : table.records) record.seconds *= 1e3;
  EXPECT_THAT(unit_mistakes(table, device)[0].hint, testing::HasSubstr("microseconds"));
}

}  // namespace
}  // namespace tools
