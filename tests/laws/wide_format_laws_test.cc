// 32 bits are 32 bits: fp32 runs at the rate of the units that multiply it, tf32 at its own, and all that a step does is in them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "engine/evaluate.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/power.h"
#include "engine/model/model_ops.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

Scenario in(Dtype format, std::string_view device) {
  Scenario scenario = toys::scenario();
  scenario.device = toys::shipped("devices", device).device;
  scenario.quant.weights = scenario.quant.activations = scenario.quant.kv = format;
  return scenario;
}

Seconds large_product(const Device& device, Dtype format) {
  const Gemm product{.m = 8192, .n = 8192, .k = 8192, .weights = format, .activations = format};
  return gemm_time(product, device, &toys::transfer()).total();
}

// NVIDIA's tensor cores multiply no fp32, so that products take the vector units' time, many times that of tf32; matrix units of MI100
// and TPUs do.
TEST(WideFormatLaws, ProductsInFp32RunAtTheRateOfTheUnitsThatMultiplyIt) {
  for (const Device& device : toys::shipped_devices()) {
    const bool tensor_cores = device.vendor == "NVIDIA" && device.peak.tf32.value > 0;
    if (tensor_cores) {
      EXPECT_LE(device.peak.fp32.value, device.vector_peak.value * 1.001) << device.name;
      EXPECT_FALSE(on_matrix_units(device, Dtype::fp32)) << device.name;
    }
    const Flops work{2.0 * 8192 * 8192 * 8192};
    EXPECT_GE(large_product(device, Dtype::fp32), work / device.peak.fp32) << device.name;
    if (device.peak.tf32.value <= 0) continue;
    EXPECT_LE(device.peak.tf32.value, std::max(device.peak.bf16, device.peak.fp16).value)
        << device.name;
    // Where tensor cores are no faster than vector units, libraries reach less of them.
    if (device.peak.tf32 < device.peak.fp32 * 2) continue;
    EXPECT_LE(large_product(device, Dtype::tf32), large_product(device, Dtype::fp32))
        << device.name;
  }
  EXPECT_TRUE(on_matrix_units(toys::shipped("devices", "mi100").device, Dtype::fp32));
  EXPECT_TRUE(on_matrix_units(toys::shipped("devices", "tpu-v5e").device, Dtype::fp32));
}

// Our H200 without a graph's gaps: GPT-2 Large on 4 x 1,024 tokens 179 ms in fp32, 67 in tf32; there all tokens had logits, 10 and 4 ms
// of it, where a step makes those of the last ones (specs/calibration/h200-sxm/fp32_products.csv).
TEST(WideFormatLaws, AModelIn32BitsTakesWhatItTookOnAnH200) {
  struct Measured {
    Dtype format;
    double seconds, least;
  };
  // Of tf32 the passes between products, which are eager and in 32 bits, are half of what was measured.
  for (const auto& [format, measured, least] :
       {Measured{Dtype::fp32, 0.169, 0.7}, Measured{Dtype::tf32, 0.063, 0.5}}) {
    Scenario scenario = in(format, "h200-sxm");
    scenario.model = toys::shipped("models", "gpt2-large").model;
    scenario.step = {.phase = StepPhase::prefill, .batch = 4, .prompt = 1024};
    const Outcome outcome = evaluate(scenario, toys::shipped_resources());
    ASSERT_EQ(outcome.status, Status::ok) << outcome.reason;
    // Eager kernels of the model's library move more than fused ones.
    EXPECT_LT(outcome.metrics.step_time.value, measured * 1.1) << name_of(format);
    EXPECT_GT(outcome.metrics.step_time.value, measured * least) << name_of(format);
    EXPECT_NE(outcome.tier, Tier::measured) << name_of(format);
  }
}

// Attention is done by vector units in either.
TEST(WideFormatLaws, AttentionIn32BitsIsTheSameInFp32AndTf32) {
  const auto attention = [](Dtype format) {
    Scenario scenario = in(format, "h200-sxm");
    scenario.step = {.phase = StepPhase::prefill, .batch = 4, .prompt = 4096};
    return evaluate(scenario, toys::transfer_resources()).metrics.attention_time.value;
  };
  EXPECT_EQ(attention(Dtype::fp32), attention(Dtype::tf32));
  EXPECT_GT(attention(Dtype::fp32), attention(Dtype::bf16) * 4);
}

TEST(WideFormatLaws, NothingOfAWideStepIsIn16Bits) {
  for (const Dtype format : {Dtype::fp32, Dtype::tf32}) {
    Quantization quant;
    quant.weights = quant.activations = quant.kv = format;
    const ModelSpec mixture = toys::mixture();
    const ModelShard wide = shard_of(mixture, {.tp = 2}, quant);
    const ModelShard usual = shard_of(mixture, {.tp = 2}, {});
    BatchShape batch;
    add_prefill(batch, 2, 512, 0, 0);
    batch.sampled = 2;
    OpList ops, in_16_bits;
    token_ops(wide, batch, ops);
    token_ops(usual, batch, in_16_bits);
    ASSERT_EQ(ops.size(), in_16_bits.size());
    const PlannedOp* other = in_16_bits.begin();
    for (const PlannedOp& op : ops) {
      if (const auto* product = std::get_if<Gemm>(&op.op)) {
        EXPECT_EQ(product->weights, format) << name_of(op.name);
        EXPECT_EQ(product->activations, format) << name_of(op.name);
      } else if (const auto* pass = std::get_if<Elementwise>(&op.op)) {
        const auto& half = std::get<Elementwise>(other->op);
        EXPECT_EQ(pass->resident_bytes, 2 * half.resident_bytes) << name_of(op.name);
        EXPECT_EQ(pass->cold_bytes, 2 * half.cold_bytes) << name_of(op.name);
      } else if (const auto* sum = std::get_if<Collective>(&op.op)) {
        EXPECT_EQ(sum->bytes, 2 * std::get<Collective>(other->op).bytes) << name_of(op.name);
      }
      ++other;
    }
    Scenario scenario = in(format, "h200-sxm");
    const Outcome stored = evaluate(scenario, toys::transfer_resources());
    const Outcome half = evaluate(in(Dtype::bf16, "h200-sxm"), toys::transfer_resources());
    EXPECT_DOUBLE_EQ(stored.metrics.weights / half.metrics.weights, 2);
  }
}

TEST(WideFormatLaws, ADeviceWithoutTf32SaysWhatRuns) {
  const Outcome outcome = evaluate(in(Dtype::tf32, "v100-sxm-32gb"), toys::transfer_resources());
  EXPECT_EQ(outcome.status, Status::infeasible);
  EXPECT_EQ(outcome.reason,
            "the device has no tf32 matrix arithmetic (device.peak.tf32 is 0); quant: {weights: "
            "fp32, activations: fp32} runs, and so does fp16");
}

// Vector units multiply fp32 whatever else a device can, and a run in 32 bits needs no narrower arithmetic.
TEST(WideFormatLaws, AnyVectorUnitMultipliesFp32) {
  Scenario scenario = toys::scenario();
  scenario.device.peak = {};
  scenario.quant.weights = scenario.quant.activations = scenario.quant.kv = Dtype::fp32;
  const Outcome by_vector = evaluate(scenario);
  ASSERT_EQ(by_vector.status, Status::ok) << by_vector.reason;
  scenario.device.peak.fp32 = scenario.device.vector_peak;
  EXPECT_EQ(evaluate(scenario).metrics.step_time, by_vector.metrics.step_time);
}

}  // namespace
}  // namespace engine
