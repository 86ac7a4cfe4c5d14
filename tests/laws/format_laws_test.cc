// Laws of number formats, on every device of the library.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "tests/support/serving_toys.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr Dtype kFormats[] = {Dtype::fp32, Dtype::bf16, Dtype::fp16, Dtype::fp8,
                              Dtype::int8, Dtype::int4, Dtype::fp4};

Outcome prompt_on(const Device& device, Dtype weights, Dtype activations) {
  Scenario scenario = toys::scenario();
  scenario.device = device;
  scenario.model = toys::shipped("models", "llama-3.2-1b").model;
  scenario.quant.weights = weights;
  scenario.quant.activations = activations;
  scenario.step.phase = StepPhase::prefill;
  scenario.step.batch = 1;
  scenario.step.prompt = 8192;
  return evaluate(scenario, toys::transfer_resources());
}

// A device either has the arithmetic and does no more of it than it can, or the point says what it lacks.
TEST(FormatLaws, NoFormatDoesMoreThanTheDeviceCan) {
  for (const Device& device : toys::shipped_devices()) {
    for (const Dtype weights : kFormats) {
      for (const Dtype activations : kFormats) {
        const Outcome outcome = prompt_on(device, weights, activations);
        const auto point = [&] {
          return device.name + " " + std::string(name_of(weights)) + " " +
                 std::string(name_of(activations)) + " " + outcome.reason;
        };
        EXPECT_NE(outcome.status, Status::failed) << point();
        if (outcome.status != Status::ok) continue;
        EXPECT_GT(outcome.metrics.model_flops_utilization, 0) << point();
        EXPECT_LE(outcome.metrics.model_flops_utilization, 1) << point();
      }
    }
  }
}

// Nobody expands both sides of an integer product to 16 bits for speed.
TEST(FormatLaws, ProductsInAFormatThatWasCutShortTakeLonger) {
  const Device device = toys::shipped("devices", "b300-sxm").device;
  ASSERT_LT(device.peak.int8, device.peak.bf16);
  EXPECT_GT(prompt_on(device, Dtype::int8, Dtype::int8).metrics.step_time,
            prompt_on(device, Dtype::bf16, Dtype::bf16).metrics.step_time * 3.0);
}

// The same bytes, and the same peak: where nobody measured integers, they take what the other format of eight bits does.
TEST(FormatLaws, EightBitsAreEightBits) {
  for (const char* name : {"h100-sxm", "b200-sxm"}) {
    const Device device = toys::shipped("devices", name).device;
    ASSERT_EQ(device.peak.int8.value, device.peak.fp8.value) << name;
    Scenario scenario = toys::scenario();
    scenario.device = device;
    scenario.model = toys::shipped("models", "llama-3.1-8b").model;
    scenario.quant.group = 1024;  // a scale a row, as integers have
    for (const std::int64_t batch : {1, 64, 256}) {
      scenario.step.batch = batch;
      const auto time_in = [&](Dtype format) {
        scenario.quant.weights = scenario.quant.activations = format;
        return evaluate(scenario, toys::transfer_resources()).metrics.step_time.value;
      };
      EXPECT_NEAR(time_in(Dtype::int8) / time_in(Dtype::fp8), 1, 0.1) << name << " " << batch;
    }
  }
}

TEST(FormatLaws, AttentionInFp32TakesLongerThanIn16Bits) {
  const Device device = toys::shipped("devices", "h100-sxm").device;
  EXPECT_GT(prompt_on(device, Dtype::fp32, Dtype::fp32).metrics.attention_time,
            prompt_on(device, Dtype::bf16, Dtype::bf16).metrics.attention_time * 1.5);
}

}  // namespace
}  // namespace engine
