#include "tools/calibrate/fit/transfer_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/toys.h"
#include "tools/calibrate/tables/predict.h"

namespace tools {
namespace {

engine::Device device_of(const char* name, const char* architecture, double bandwidth) {
  engine::Device device = toys::gpu();
  device.name = name;
  device.architecture = architecture;
  device.memory_bandwidth = engine::BytesPerSecond{bandwidth};
  return device;
}

// Decode attention by a known law: the truth that a fit should find again.
engine::Calibration truth() {
  engine::Calibration calibration;
  auto& set = calibration.attn_decode.edit(engine::ParameterSet::own);
  set.launch = 1;
  set.fit = {.memory_share = 0.8,
             .floor_clocks = 9,
             .stream_rate = 8,
             .overlap_power = 4,
             .least_split_keys = 256,
             .engine_floor_clocks = 6};
  return calibration;
}

DeviceCalls calls_on(engine::Device device, bool by_engine) {
  const engine::Calibration law = truth();
  DeviceCalls calls{.device = std::move(device)};
  const Predictor predict(calls.device, &law);
  for (double batch = 1; batch <= 256; batch *= 4) {
    for (double context = 128; context <= 65536; context *= 2) {
      MeasuredCall measured{.call = {.family = engine::Family::attn_decode}};
      measured.call.stores_kv = measured.call.warm = by_engine;
      measured.call[Size::batch] = batch;
      measured.call[Size::context_len] = context;
      measured.call[Size::q_heads] = 32;
      measured.call[Size::kv_heads] = 8;
      measured.call[Size::head_dim] = 128;
      measured.seconds = predict(measured.call).seconds;
      calls.calls.push_back(measured);
    }
  }
  return calls;
}

TEST(TransferFit, ADeviceLeftOutIsPredictedByItsRelativeAndByStrangers) {
  const std::vector<DeviceCalls> devices = {calls_on(device_of("old", "Ampere", 1e12), true),
                                            calls_on(device_of("one", "Hopper", 3e12), true),
                                            calls_on(device_of("two", "Hopper", 5e12), true)};
  const auto rows = leave_one_out(devices, {});
  ASSERT_EQ(rows.size(), 5);  // two relatives, each also without its generation, and the stranger
  for (const LeftOut& row : rows) {
    EXPECT_LT(row.errors.mean, 0.15) << row.device << " by " << row.set;
    EXPECT_LT(row.errors.mean, row.roofline.mean / 3) << row.device << " by " << row.set;
    EXPECT_EQ(row.set, row.without == Without::device ? "hopper" : "pooled");
  }
}

TEST(TransferFit, WhatAnEngineAddsIsToldFromTheKernel) {
  const std::vector<DeviceCalls> devices = {calls_on(device_of("one", "Hopper", 3e12), true),
                                            calls_on(device_of("two", "Hopper", 5e12), false)};
  const TransferFit fit = fit_transfer(devices, {});
  const auto* hopper = fit.calibration.attn_decode.find(engine::ParameterSet::hopper);
  ASSERT_NE(hopper, nullptr);
  EXPECT_NEAR(hopper->fit.engine_floor_clocks, 6, 1);
  EXPECT_LE(hopper->low, 1);
  EXPECT_GE(hopper->high, 1);
  // Shapes outside the tables are flagged.
  MeasuredCall call = devices[0].calls.front();
  call.call[Size::context_len] = 1e6;
  EXPECT_TRUE(Predictor(devices[0].device, &fit.calibration)(call.call).extrapolated);
}

TEST(TransferFit, AnEngineHasParametersOfTheGenerationsItRanOn) {
  const std::vector calls = {calls_on(device_of("one", "Hopper", 3e12), true)};
  const EngineFit fit = fit_engine({.rows = calls, .kernels = calls}, {});
  for (const engine::Calibration* part : {&fit.forms, &fit.rows}) {
    const auto& sets = part->attn_decode;
    EXPECT_NE(sets.find(engine::ParameterSet::hopper), nullptr);
    EXPECT_EQ(sets.find(engine::ParameterSet::pooled), nullptr);
  }
}

TEST(TransferFit, WhatSaysNothingOfAKernelIsForRowsOfTablesAlone) {
  const DeviceCalls calls = calls_on(device_of("one", "Hopper", 3e12), true);
  DeviceCalls few = calls, none = calls;
  few.calls.resize(calls.calls.size() / 2);
  none.calls.clear();
  const auto has_set = [](const engine::Calibration& part) {
    return part.attn_decode.find(engine::ParameterSet::hopper) != nullptr;
  };
  const EngineFit without = fit_engine({.rows = {calls}, .kernels = {none}}, {});
  EXPECT_TRUE(has_set(without.rows));
  EXPECT_FALSE(has_set(without.forms));
  const EngineFit fewer = fit_engine({.rows = {calls}, .kernels = {few}}, {});
  const EngineFit alone = fit_engine({.rows = {few}, .kernels = {few}}, {});
  EXPECT_EQ(engine::write_calibration(fewer.forms), engine::write_calibration(alone.forms));
}

}  // namespace
}  // namespace tools
