// Laws of matrix products on a grid of multipliers.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/evaluate.h"
#include "engine/kernels/array.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Device grid(Dataflow dataflow) {
  Device device = toys::gpu();
  device.multiprocessors = device.rated_multiprocessors = 1;
  device.array = {.rows = 128,
                  .columns = 128,
                  .dataflow = dataflow,
                  .multiply_energy = Joules{1e-12},
                  .buffer_energy = Joules{2e-12},
                  .memory_energy = Joules{100e-12},
                  .multiplier_area_um2 = 3000,
                  .buffer_area_mm2 = 2};
  device.l2_capacity = Bytes{0x1p20 * 8};
  return device;
}

// ResNet-50's first layer: 112 x 112 pixels of 64 channels, each a sum of 7 x 7 x 3.
const ImageConvolution kConv1{.rows = 12544,
                              .n = 64,
                              .k = 147,
                              .values_in = 3 * 224 * 224,
                              .values_out = 12544 * 64,
                              .weights = Dtype::fp16,
                              .activations = Dtype::fp16};

// Two fills of 256 + 128 + 12,544 - 2 cycles; or 98 of 256 + 128 + 147 - 2.
TEST(ArrayLaws, CyclesAreFillsTimesWhatPasses) {
  EXPECT_EQ(array_call(kConv1, grid(Dataflow::weight_stationary))->cycles, 2 * 12926);
  EXPECT_EQ(array_call(kConv1, grid(Dataflow::output_stationary))->cycles, 98 * 529);
  EXPECT_EQ(array_call(kConv1, grid(Dataflow::weight_stationary))->multiplies, 118013952);
}

// Inputs pass once; sums of the first fill are written and read in 32 bits; or weights are loaded 98 times.
TEST(ArrayLaws, TrafficWithTheBufferFollowsTheDataflow) {
  EXPECT_EQ(array_call(kConv1, grid(Dataflow::weight_stationary))->buffer.value,
            12544.0 * 147 * 2 + 147 * 64 * 2 + 12544 * 64 * (2 + 8));
  EXPECT_EQ(array_call(kConv1, grid(Dataflow::output_stationary))->buffer.value,
            12544.0 * 147 * 2 + 98 * 147 * 64 * 2 + 12544 * 64 * 2);
}

// What fits the buffer stays there; weights come from memory.
TEST(ArrayLaws, TrafficWithMemoryIsWhatTheBufferDoesNotHold) {
  Device device = grid(Dataflow::weight_stationary);
  EXPECT_EQ(array_call(kConv1, device)->memory.value, 147 * 64 * 2);
  device.l2_capacity = Bytes{0};
  EXPECT_EQ(array_call(kConv1, device)->memory.value,
            2.0 * (147 * 64 + 3 * 224 * 224 + 12544 * 64));
}

TEST(ArrayLaws, NoGridDoesMoreThanItsMultipliersCan) {
  for (const Dataflow dataflow : {Dataflow::weight_stationary, Dataflow::output_stationary}) {
    for (std::int64_t size = 1; size <= 1 << 14; size = size * 3 + 1) {
      for (const std::int64_t grids : {1, 3, 64}) {
        Device device = grid(dataflow);
        device.multiprocessors = grids;
        const ArrayCall call = *array_call(Gemm{.m = size, .n = 300, .k = 1000}, device);
        EXPECT_LE(call.multiplies, call.cycles * 128 * 128 * double(grids)) << size;
      }
    }
  }
}

TEST(ArrayLaws, MoreWorkNeverTakesFewerCycles) {
  for (const Dataflow dataflow : {Dataflow::weight_stationary, Dataflow::output_stationary}) {
    const Device device = grid(dataflow);
    for (std::int64_t Gemm::*side : {&Gemm::m, &Gemm::n, &Gemm::k}) {
      ArrayCall before;
      for (std::int64_t size = 1; size < 2000; size += 37) {
        Gemm gemm{.m = 100, .n = 200, .k = 300};
        gemm.*side = size;
        const ArrayCall call = *array_call(gemm, device);
        EXPECT_GE(call.cycles, before.cycles);
        EXPECT_GE(call.buffer, before.buffer);
        EXPECT_GE(call.memory, before.memory);
        before = call;
      }
    }
  }
}

Scenario conv1() {
  Scenario scenario = toys::scenario();
  scenario.task = Task::classify;
  scenario.device = grid(Dataflow::weight_stationary);
  scenario.model.network = "conv 64 from 3 side 224 kernel 7 stride 2";
  scenario.quant.weights = scenario.quant.activations = Dtype::fp16;
  scenario.device.peak.fp16 = scenario.device.peak.bf16;
  scenario.host = toys::no_host();
  return scenario;
}

Metrics made(const Scenario& scenario) {
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
  return outcome.metrics;
}

TEST(ArrayLaws, APointHasCyclesEnergyByLevelAndArea) {
  const Metrics metrics = made(conv1());
  EXPECT_EQ(metrics.array_cycles, 25852);
  EXPECT_NEAR(metrics.array_utilization, 118013952 / (25852 * 16384.0), 1e-12);
  EXPECT_NEAR(metrics.multiply_energy.value, 118013952e-12, 1e-12);
  EXPECT_NEAR(metrics.buffer_energy.value, 2e-12 * 11734912, 1e-12);
  EXPECT_NEAR(metrics.memory_energy.value, 100e-12 * 18816, 1e-12);
  EXPECT_NEAR(metrics.area_mm2, 16384 * 3000e-6 + 8 * 2, 1e-9);
  EXPECT_TRUE(std::isnan([] {
    Scenario plain = conv1();
    plain.device.array = {};
    return made(plain).array_cycles;
  }()));
}

// The longest of grids, buffer and memory.
TEST(ArrayLaws, TimeIsThatOfTheSlowestLevel) {
  Scenario scenario = conv1();
  scenario.device.launch_latency = Seconds{0};
  scenario.device.memory_bandwidth = BytesPerSecond{1e15};
  scenario.device.l2_bandwidth = BytesPerSecond{0};
  const double cycles = 25852 / scenario.device.clock.value;
  EXPECT_NEAR(made(scenario).image_latency.value, cycles, 1e-12);
  scenario.device.l2_bandwidth = BytesPerSecond{1e9};
  EXPECT_NEAR(made(scenario).image_latency.value, 11734912 / 1e9, 1e-9);
  scenario.device.memory_bandwidth = BytesPerSecond{1e6};
  scenario.device.l2_bandwidth = BytesPerSecond{1e15};
  EXPECT_NEAR(made(scenario).image_latency.value, 18816 / 1e6, 1e-9);
}

TEST(ArrayLaws, FasterPartsAreNoSlower) {
  Scenario scenario = conv1();
  const Seconds before = made(scenario).image_latency;
  for (void (*better)(Device&) :
       {+[](Device& d) { d.memory_bandwidth *= 2; }, +[](Device& d) { d.l2_bandwidth *= 2; },
        +[](Device& d) { d.clock *= 2; }, +[](Device& d) { d.multiprocessors *= 2; },
        +[](Device& d) { d.l2_capacity *= 2; }}) {
    Scenario faster = scenario;
    better(faster.device);
    EXPECT_LE(made(faster).image_latency, before);
  }
}

}  // namespace
}  // namespace engine
