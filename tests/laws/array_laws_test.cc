// Laws of matrix products on a grid of multipliers.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/evaluate.h"
#include "engine/kernels/grid/grid_call.h"
#include "engine/kernels/power.h"
#include "engine/model/backward_ops.h"
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
  EXPECT_EQ(grid_call(kConv1, grid(Dataflow::weight_stationary))->cycles, 2 * 12926);
  EXPECT_EQ(grid_call(kConv1, grid(Dataflow::output_stationary))->cycles, 98 * 529);
  EXPECT_EQ(grid_call(kConv1, grid(Dataflow::weight_stationary))->multiplies, 118013952);
}

// The first product of a layer of Llama 3.1 8B: 32 x 48 fills, which 512 tokens pass; or 4 x 48, which 4,096 values pass.
TEST(ArrayLaws, CyclesOfALanguageModelsProduct) {
  const Gemm qkv{.m = 512, .n = 6144, .k = 4096};
  EXPECT_EQ(grid_call(qkv, grid(Dataflow::weight_stationary))->cycles, 32 * 48 * (382 + 512));
  EXPECT_EQ(grid_call(qkv, grid(Dataflow::output_stationary))->cycles, 4 * 48 * (382 + 4096));
}

// Four heads share keys, so their queries pass together: two strips of keys, then two parts of the sum over keys; eight times.
TEST(ArrayLaws, HeadsThatShareKeysPassTogether) {
  const AttentionPrefill prompt{.sequences = 1,
                                .tokens = 256,
                                .pairs = 256 * 257 / 2,
                                .kv_tokens = 256,
                                .heads = 32,
                                .kv_heads = 8};
  const GridCall call = *grid_call(prompt, grid(Dataflow::weight_stationary));
  EXPECT_EQ(call.cycles, 8 * (2 + 2) * (382 + 4 * 256));
  EXPECT_EQ(call.multiplies, 32.0 * 256 * 256 * (128 + 128));
  EXPECT_EQ(call.memory.value, 256 * 8 * (128 + 128) * 2);
}

// Eight experts, of which each of 1,024 tokens chooses two in turn.
const Moe kExperts{.tokens = 1024,
                   .hidden = 512,
                   .intermediate = 256,
                   .top_k = 2,
                   .experts = 8,
                   .local_experts = 8,
                   .balanced = true};

// 256 tokens each pass 4 x 4 fills that open an expert, and 2 x 4 that close it.
TEST(ArrayLaws, ExpertsAreProductsOfTheirOwn) {
  const GridCall call = *grid_call(kExperts, grid(Dataflow::weight_stationary));
  EXPECT_EQ(call.cycles, 8 * (4 * 4 + 2 * 4) * (382 + 256));
  EXPECT_EQ(call.multiplies, 2048.0 * 512 * 256 * 3);
  EXPECT_EQ(call.cold.value, 8 * 3 * 512 * 256 * 2);
}

// A model of one expert that every token goes to is a dense one, and routing takes nothing off a grid's energy.
TEST(ArrayLaws, OneExpertIsADenseModel) {
  Scenario dense = toys::scenario();
  dense.task = Task::step;
  dense.device = grid(Dataflow::weight_stationary);
  dense.step = {.phase = StepPhase::prefill, .batch = 2, .prompt = 256};
  Scenario routed = dense;
  routed.model.moe = {.experts = 1, .top_k = 1, .intermediate = dense.model.intermediate};
  const Outcome one = evaluate(dense), other = evaluate(routed);
  ASSERT_EQ(one.status, Status::ok) << one.reason;
  ASSERT_EQ(other.status, Status::ok) << other.reason;
  // The router's product, of one column, comes on top.
  EXPECT_NEAR(other.metrics.multiply_energy / one.metrics.multiply_energy, 1, 1e-3);
  EXPECT_NEAR(other.metrics.memory_energy / one.metrics.memory_energy, 1, 1e-3);
}

// Devices that share experts unevenly wait for one another, and multiply no more than one device that has all.
TEST(ArrayLaws, SharedExpertsAreMultipliedOnce) {
  Moe all = kExperts;
  all.balanced = false;
  all.skew = 1;
  Moe part = all;
  part.local_experts = 2;
  const Device device = grid(Dataflow::weight_stationary);
  const GridCall alone = *grid_call(all, device), shared = *grid_call(part, device);
  EXPECT_NEAR(4 * shared.multiplies / alone.multiplies, 1, 1e-12);
  EXPECT_GT(4 * shared.cycles, alone.cycles);
}

// A grid does what a GPU does, more slowly or faster.
TEST(ArrayLaws, UsefulArithmeticIsThatOfTheSameOpElsewhere) {
  const Device with = grid(Dataflow::output_stationary);
  Device without = with;
  without.array = {};
  const AttentionPrefill prompt{
      .sequences = 2, .tokens = 600, .pairs = 90000, .kv_tokens = 700, .heads = 32, .kv_heads = 8};
  AttentionPrefill backward = prompt;
  backward.backward = true;
  backward.pairs *= kAttentionBackward;
  const AttentionDecode latent{.sequences = 3,
                               .queries = 2,
                               .kv_tokens = 900,
                               .heads = 16,
                               .kv_heads = 1,
                               .key_dim = 576,
                               .value_dim = 512,
                               .values_in_keys = true};
  for (const auto& [family, op] : std::vector<std::pair<Family, Op>>{
           {Family::gemm, Gemm{.m = 77, .n = 300, .k = 500, .batch = 3}},
           {Family::gemm, GroupedGemm{.rows = 90, .touched = 7, .n = 300, .k = 500}},
           {Family::moe, kExperts},
           {Family::convolution, kConv1},
           {Family::attn_prefill, prompt},
           {Family::attn_prefill, backward},
           {Family::mla_decode, latent}}) {
    const KernelTime there = kernel_time(family, op, without, nullptr);
    const KernelTime here = kernel_time(family, op, with, nullptr);
    EXPECT_NEAR(here.flops / there.flops, 1, 1e-12) << name_of(family);
    EXPECT_LE(here.flops.value, 2 * grid_call(op, with)->multiplies) << name_of(family);
    EXPECT_GE(here.time * matrix_peak_of(op, with), here.flops) << name_of(family);
  }
}

// Inputs pass once; sums of the first fill are written and read in 32 bits; or weights are loaded 98 times.
TEST(ArrayLaws, TrafficWithTheBufferFollowsTheDataflow) {
  EXPECT_EQ(grid_call(kConv1, grid(Dataflow::weight_stationary))->buffer.value,
            12544.0 * 147 * 2 + 147 * 64 * 2 + 12544 * 64 * (2 + 8));
  EXPECT_EQ(grid_call(kConv1, grid(Dataflow::output_stationary))->buffer.value,
            12544.0 * 147 * 2 + 98 * 147 * 64 * 2 + 12544 * 64 * 2);
}

// Weights come from memory. Without a buffer inputs and outputs do, too, and unfinished sums go there and back.
TEST(ArrayLaws, TrafficWithMemoryIsWhatTheBufferDoesNotHold) {
  Device device = grid(Dataflow::weight_stationary);
  EXPECT_EQ(grid_call(kConv1, device)->memory.value, 147 * 64 * 2);
  device.l2_capacity = Bytes{0};
  EXPECT_EQ(grid_call(kConv1, device)->memory.value,
            2.0 * (147 * 64 + 3 * 224 * 224 + 12544 * 64) + 8.0 * 12544 * 64);
}

// From all that the grid asks for, where there is no buffer, down to weights.
TEST(ArrayLaws, ALargerBufferNeverMeansMoreTrafficWithMemory) {
  for (const Dataflow dataflow : {Dataflow::weight_stationary, Dataflow::output_stationary}) {
    for (const Gemm& gemm : {Gemm{.m = 1, .n = 1, .k = 1}, Gemm{.m = 500, .n = 700, .k = 900},
                             Gemm{.m = 5000, .n = 130, .k = 300, .batch = 3}}) {
      Device device = grid(dataflow);
      device.l2_capacity = Bytes{0};
      Bytes before = grid_call(gemm, device)->memory;
      EXPECT_EQ(before, grid_call(gemm, device)->buffer);
      for (double capacity = 1; capacity < 1e9; capacity *= 1.7) {
        device.l2_capacity = Bytes{capacity};
        const Bytes memory = grid_call(gemm, device)->memory;
        EXPECT_LE(memory, before) << capacity;
        before = memory;
      }
      EXPECT_EQ(before.value, 2.0 * double(gemm.batch * gemm.n * gemm.k));
    }
  }
}

// A grid that is twice as high and wide has a quarter of the fills, if there was work for it, and none of them takes twice as long. One
// that a product does not fill takes longer to fill and to drain all the same.
TEST(ArrayLaws, ALargerGridIsFasterOnlyIfItIsFilled) {
  for (const Dataflow dataflow : {Dataflow::weight_stationary, Dataflow::output_stationary}) {
    Device large = grid(dataflow);
    large.array.rows *= 2;
    large.array.columns *= 2;
    for (std::int64_t size = 256; size <= 1 << 14; size *= 2) {
      const Gemm filled{.m = size, .n = size, .k = size};
      EXPECT_LE(grid_call(filled, large)->cycles, grid_call(filled, grid(dataflow))->cycles / 2);
    }
    const Gemm small{.m = 16, .n = 16, .k = 16};
    EXPECT_GT(grid_call(small, large)->cycles, grid_call(small, grid(dataflow))->cycles);
  }
}

TEST(ArrayLaws, NoGridDoesMoreThanItsMultipliersCan) {
  for (const Dataflow dataflow : {Dataflow::weight_stationary, Dataflow::output_stationary}) {
    for (std::int64_t size = 1; size <= 1 << 14; size = size * 3 + 1) {
      for (const std::int64_t grids : {1, 3, 64}) {
        Device device = grid(dataflow);
        device.multiprocessors = grids;
        const GridCall call = *grid_call(Gemm{.m = size, .n = 300, .k = 1000}, device);
        EXPECT_LE(call.multiplies, call.cycles * 128 * 128 * double(grids)) << size;
      }
    }
  }
}

TEST(ArrayLaws, MoreWorkNeverTakesFewerCycles) {
  for (const Dataflow dataflow : {Dataflow::weight_stationary, Dataflow::output_stationary}) {
    const Device device = grid(dataflow);
    for (std::int64_t Gemm::*side : {&Gemm::m, &Gemm::n, &Gemm::k}) {
      GridCall before;
      for (std::int64_t size = 1; size < 2000; size += 37) {
        Gemm gemm{.m = 100, .n = 200, .k = 300};
        gemm.*side = size;
        const GridCall call = *grid_call(gemm, device);
        EXPECT_GE(call.cycles, before.cycles);
        EXPECT_GE(call.buffer, before.buffer);
        EXPECT_GE(call.memory, before.memory) << size;
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
  EXPECT_EQ(metrics.array_energy,
            metrics.multiply_energy + metrics.buffer_energy + metrics.memory_energy);
  EXPECT_NEAR(metrics.area_mm2, 16384 * 3000e-6 + 8 * 2, 1e-9);
  EXPECT_TRUE(std::isnan([] {
    Scenario plain = conv1();
    plain.device.array = {};
    return made(plain).array_cycles;
  }()));
}

// The longest of grids, buffer and memory; a buffer is no slower than memory.
TEST(ArrayLaws, TimeIsThatOfTheSlowestLevel) {
  Scenario scenario = conv1();
  scenario.device.launch_latency = Seconds{0};
  scenario.device.peak.fp16 = FlopsPerSecond{1e18};
  scenario.device.memory_bandwidth = scenario.device.l2_bandwidth = BytesPerSecond{1e15};
  const double cycles = 25852 / scenario.device.clock.value;
  EXPECT_NEAR(made(scenario).image_latency.value, cycles, 1e-12);
  scenario.device.peak.fp16 = FlopsPerSecond{1e18};
  scenario.device.memory_bandwidth = scenario.device.l2_bandwidth = BytesPerSecond{1e9};
  EXPECT_NEAR(made(scenario).image_latency.value, 11734912 / 1e9, 1e-9);
  scenario.device.memory_bandwidth = BytesPerSecond{1e6};
  scenario.device.l2_bandwidth = BytesPerSecond{1e15};
  EXPECT_NEAR(made(scenario).image_latency.value, 18816 / 1e6, 1e-9);
}

// Figures count what the kernels table has, padding of captured batches as well.
TEST(ArrayLaws, CyclesAreThoseOfTheKernels) {
  Scenario scenario = toys::scenario();
  scenario.task = Task::step;
  scenario.device = grid(Dataflow::weight_stationary);
  scenario.device.launch_latency = Seconds{0};
  scenario.device.peak.bf16 = FlopsPerSecond{1e18};
  scenario.device.memory_bandwidth = scenario.device.l2_bandwidth = BytesPerSecond{1e18};
  scenario.host.mode = HostMode::graph;
  for (const StepPhase phase : {StepPhase::decode, StepPhase::prefill}) {
    scenario.step.phase = phase;
    scenario.step.batch = 5;
    const Outcome outcome = evaluate(scenario);
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    Seconds products;
    for (const KernelRow& row : outcome.kernels) {
      if (row.family == Family::gemm || is_attention(row.family)) products += row.work.time;
    }
    EXPECT_NEAR(outcome.metrics.array_cycles / scenario.device.clock.value / products.value, 1,
                1e-9);
  }
}

TEST(ArrayLaws, AGridHasRowsAndColumns) {
  Scenario scenario = conv1();
  scenario.device.array.columns = 0;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason,
            "a grid of 128 rows and 0 columns multiplies nothing: state both device.array.rows and "
            "device.array.columns, or neither");
}

// 128 x 128 multipliers x 2 x 1 GHz.
TEST(ArrayLaws, APeakThatIsNotStatedFollowsFromTheGrid) {
  Scenario stated = conv1(), unstated = stated;
  stated.device.peak =
      MatrixPeaks{.bf16 = FlopsPerSecond{32.768e12}, .fp16 = FlopsPerSecond{32.768e12}};
  unstated.device.peak = {};
  EXPECT_EQ(matrix_peak(unstated.device, Dtype::fp16).value, 32.768e12);
  EXPECT_EQ(made(unstated).image_latency, made(stated).image_latency);
  EXPECT_EQ(made(unstated).model_flops_utilization, made(stated).model_flops_utilization);
  unstated.device.array.rows *= 2;
  unstated.device.clock *= 3;
  EXPECT_EQ(matrix_peak(unstated.device, Dtype::fp16).value, 6 * 32.768e12);
}

TEST(ArrayLaws, APeakBelowTheGridIsRefused) {
  Scenario scenario = conv1();
  scenario.device.peak = {};
  scenario.device.peak.fp16 = scenario.device.peak.bf16 = FlopsPerSecond{32.768e12};
  scenario.device.array.columns = 512;
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(
      outcome.reason,
      "device.peak.fp16 (32.77 TFLOP/s) is less than the grid does: 128 x 512 multipliers x 1 "
      "multiprocessors x 2 x 1 GHz are 131.1 TFLOP/s; state as much, or no device.peak at all, "
      "which then follows from the grid");
}

TEST(ArrayLaws, WhatDoesNotFitIsARowWithAReason) {
  Scenario scenario = conv1();
  scenario.device.memory_capacity = Bytes{1e6};
  const Outcome outcome = evaluate(scenario);
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_NE(outcome.reason.find("does not fit"), std::string::npos) << outcome.reason;
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
