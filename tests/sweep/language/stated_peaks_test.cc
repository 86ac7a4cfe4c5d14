// What a device that is made from another states of itself is what it has.
#include <gtest/gtest.h>

#include <string>

#include "engine/hardware/device.h"
#include "tests/sweep/sweep_fixture.h"

namespace sweep {
namespace {

engine::Device device_of(const std::string& text) {
  const auto spec = read_sweep_text("base: {model: gpt2-large, device: " + text + "}\n",
                                    "sweep.yaml", Library({paths::specs()}), InertAxes::allowed);
  if (!spec) {
    ADD_FAILURE() << engine::to_text(spec.mistakes());
    return {};
  }
  return admitted(*spec).front().device;
}

double peak(const engine::Device& device, engine::Dtype format) {
  return engine::matrix_peak(device, format).value;
}

// A P4 has 20 of a P100's 56 multiprocessors and another clock: its peak is what it says, not that times 20 / 56.
TEST(StatedPeaks, OfADeviceMadeFromAnotherAreItsOwn) {
  const engine::Device p4 = device_of(
      "{from: p100-pcie, multiprocessors: 20, clock: 1.075 GHz, peak: {fp32: 5.5 TFLOP/s}}");
  EXPECT_DOUBLE_EQ(peak(p4, engine::Dtype::fp32), 5.5e12);
  // What it does not state follows its size and clock, as everything does where nothing is stated.
  const engine::Device smaller =
      device_of("{from: p100-pcie, multiprocessors: 20, clock: 1.075 GHz}");
  EXPECT_NEAR(peak(p4, engine::Dtype::fp16), peak(smaller, engine::Dtype::fp16), 1);
  EXPECT_NEAR(peak(smaller, engine::Dtype::fp32), 9.3e12 * 20 / 56 * 1.075 / 1.303, 1e6);
  EXPECT_NEAR((p4.vector_peak * p4.on_chip_scale()).value,
              (smaller.vector_peak * smaller.on_chip_scale()).value, 1);
  EXPECT_NEAR((p4.l2_bandwidth * p4.on_chip_scale()).value,
              (smaller.l2_bandwidth * smaller.on_chip_scale()).value, 1);
}

TEST(StatedPeaks, HoldForTheClockAndSizeThatASpecNames) {
  const engine::Device named = device_of(
      "{from: h200-sxm, multiprocessors: 66, rated_multiprocessors: 132, peak.bf16: 800 TFLOP/s}");
  EXPECT_DOUBLE_EQ(peak(named, engine::Dtype::bf16), 400e12);
  // One that states nothing is the device that it is made from.
  EXPECT_EQ(device_of("{from: h200-sxm, memory_bandwidth: 8 TB/s}").peak,
            device_of("h200-sxm").peak);
  // A later clock goes on from what was stated.
  const engine::Device slower = device_of(
      "{from: {from: h200-sxm, multiprocessors: 66, peak.bf16: 800 TFLOP/s}, clock: 915 MHz}");
  EXPECT_DOUBLE_EQ(peak(slower, engine::Dtype::bf16), 400e12);
}

}  // namespace
}  // namespace sweep
