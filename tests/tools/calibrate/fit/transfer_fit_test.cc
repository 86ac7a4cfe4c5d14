#include "tools/calibrate/fit/transfer_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/toys.h"
#include "tools/calibrate/fit/other_vendors.h"
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
    EXPECT_LT(row.errors.mean, row.roofline.mean / 2.5) << row.device << " by " << row.set;
    EXPECT_EQ(row.set, row.without == Without::device ? "hopper" : "pooled");
  }
}

// Each of two generations is too slow for the other's parameters or too fast. The third may be either.
TEST(TransferFit, AGenerationLeftOutMayBeOffEitherWay) {
  for (const double slower : {1.25, 1.6}) {
    std::vector<DeviceCalls> devices = {calls_on(device_of("one", "Ampere", 2e12), true),
                                        calls_on(device_of("two", "Hopper", 2e12), true)};
    for (MeasuredCall& call : devices[1].calls) call.seconds *= slower;
    const TransferFit fit = fit_transfer(devices, {});
    ASSERT_EQ(fit.left_out.size(), 2);
    for (const LeftOut& row : fit.left_out) {
      EXPECT_GT(std::abs(row.errors.bias), 0.1) << row.device;
      EXPECT_GT(row.errors.coverage, 0.75) << row.device << " " << slower;
    }
    const auto* pooled = fit.calibration.attn_decode.find(engine::ParameterSet::pooled);
    EXPECT_NEAR(pooled->low * pooled->high, 1, 1e-3);
    // A generation that was measured keeps an interval of its own.
    const auto* hopper = fit.calibration.attn_decode.find(engine::ParameterSet::hopper);
    EXPECT_LT(hopper->high / hopper->low, 1 + (pooled->high / pooled->low - 1) / 2);
  }
}

// What NVIDIA's devices share is not fitted to another vendor's, whose own set speaks for it alone: its calls say how far the shared
// parameters may be off on a device that has no set.
TEST(TransferFit, AnotherVendorsCallsWidenWhatEverybodyShares) {
  const std::vector<DeviceCalls> fitted = {calls_on(device_of("one", "Ampere", 2e12), true),
                                           calls_on(device_of("two", "Hopper", 3e12), true)};
  const engine::Calibration before = fit_transfer(fitted, {}).calibration;
  std::vector<DeviceCalls> others = {calls_on(device_of("other", "CDNA 3", 3e12), true)};
  for (const double slower : {2.0, 1.0, 0.5}) {
    std::vector<DeviceCalls> foreign = others;
    for (MeasuredCall& call : foreign.front().calls) call.seconds *= slower;
    engine::Calibration shared = before;
    widen_pooled(shared, foreign, {});
    const auto* pooled = shared.attn_decode.find(engine::ParameterSet::pooled);
    const auto* narrow = before.attn_decode.find(engine::ParameterSet::pooled);
    EXPECT_LE(pooled->low, narrow->low);
    EXPECT_GE(pooled->high, narrow->high);
    if (slower != 1) {
      EXPECT_LT(pooled->low, 0.6);
      EXPECT_GT(pooled->high, 1.7);
    }
    // Measured generations keep theirs.
    EXPECT_EQ(shared.attn_decode.find(engine::ParameterSet::hopper)->high,
              before.attn_decode.find(engine::ParameterSet::hopper)->high);
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

// Products of a library, in 16 bits and in fp8, by one form: fp8 multiplies at a smaller share of its peak. Engines quantise the input of
// the latter within the call.
engine::Calibration product_truth() {
  engine::Calibration calibration;
  engine::GemmFit fit{.memory_share = 0.85,
                      .cache_rate = 1,
                      .step_latency = 0.1,
                      .cache_share = 0.5,
                      .split_joining = 4,
                      .compute_share = 0.9,
                      .kernel_start = 1,
                      .tile_start = 0.5,
                      .tile_writing = 4,
                      .wave_overlap = 0.5,
                      .small_tile_loss = 5,
                      .floor = 1,
                      .pipeline_fill = 1,
                      .pipeline_half = 2};
  for (const auto format : {engine::GemmFormat::bf16, engine::GemmFormat::fp8}) {
    auto& set = calibration.gemm[std::size_t(format)].edit(engine::ParameterSet::own);
    set.launch = 1;
    set.fit = fit;
    fit.compute_share = 0.75;
    fit.floor = 7;
    fit.quantize_floor = 6;
    fit.quantize_memory_share = 0.3;
    fit.quantize_row = 0.5;
  }
  return calibration;
}

DeviceCalls products_on(engine::Device device, bool by_engine) {
  device.peak.fp8 = device.peak.bf16 * 2;
  const engine::Calibration law = product_truth();
  DeviceCalls calls{.device = std::move(device)};
  const Predictor predict(calls.device, &law);
  for (const Format format : {Format::bf16, Format::fp8}) {
    for (double m = 1; m <= 8192; m *= 4) {
      for (const double n : {1024, 6144, 28672}) {
        for (const double k : {1024, 4096, 14336}) {
          MeasuredCall measured{.call = {.family = engine::Family::gemm, .dtype = format}};
          measured.call.quantizes_input = by_engine && format == Format::fp8;
          measured.call[Size::m] = m;
          measured.call[Size::n] = n;
          measured.call[Size::k] = k;
          measured.seconds = predict(measured.call).seconds;
          calls.calls.push_back(measured);
        }
      }
    }
  }
  return calls;
}

// An engine's table knows a narrow product only with its quantiser. What that adds is told from the product by those in 16 bits.
TEST(TransferFit, ANarrowProductThatOnlyEnginesTimedIsLikeThatIn16Bits) {
  const std::vector<DeviceCalls> devices = {products_on(device_of("one", "Hopper", 3e12), true),
                                            products_on(device_of("two", "Hopper", 5e12), false)};
  const auto error_with = [&](const TransferOptions& options) {
    const auto rows = leave_one_out(devices, options);
    const auto alone = [](const LeftOut& row) {
      return row.section == "gemm/fp8" && row.device == "two" && row.without == Without::device;
    };
    const auto found = std::ranges::find_if(rows, alone);
    return found == rows.end() ? 1.0 : found->errors.mean;
  };
  const double without = error_with({.sections = {"gemm/fp8"}});  // in 16 bits nothing is known
  EXPECT_LT(error_with({}), 0.1);
  EXPECT_LT(error_with({}), without / 1.5) << without;
}

// Kernels of one generation may give every head tiles of its own; what several generations have in common packs heads that share keys.
TEST(TransferFit, AGenerationsOwnKernelsMayKeepHeadsApart) {
  engine::Calibration law;
  auto& truth_set = law.attn_prefill.edit(engine::ParameterSet::own);
  truth_set.launch = 1;
  truth_set.fit = {.compute_share = 0.7,
                   .exponentials = 1,
                   .tile_start = 0.5,
                   .key_block_latency = 0.02,
                   .tail = 0.5,
                   .longest_tile = 1.2,
                   .floor_clocks = 5,
                   .tile_rows = 128,
                   .packed_heads = 0};
  DeviceCalls calls{.device = device_of("one", "Hopper", 3e12)};
  const Predictor predict(calls.device, &law);
  for (double batch = 1; batch <= 16; batch *= 4) {
    for (double query = 16; query <= 4096; query *= 2) {
      for (const double heads : {8, 32, 64}) {
        MeasuredCall measured{.call = {.family = engine::Family::attn_prefill}};
        measured.call.stores_kv = true;
        measured.call[Size::batch] = batch;
        measured.call[Size::query_len] = measured.call[Size::context_len] = query;
        measured.call[Size::q_heads] = heads;
        measured.call[Size::kv_heads] = 8;
        measured.call[Size::head_dim] = 128;
        measured.seconds = predict(measured.call).seconds;
        calls.calls.push_back(measured);
      }
    }
  }
  const TransferFit fit = fit_transfer({calls}, {});
  const auto packed = [&](engine::ParameterSet set) {
    return fit.calibration.attn_prefill.find(set)->fit.packed_heads;
  };
  EXPECT_EQ(packed(engine::ParameterSet::hopper), 0);
  EXPECT_EQ(packed(engine::ParameterSet::pooled), 1);
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
