// Softmax waits for special-function units: who has more of them reads prompts faster, and does nothing else faster.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/kernels/kernel_time.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

double attention_of(const Device& device, std::int64_t prompt, Dtype kv) {
  const AttentionPrefill op{.tokens = double(prompt),
                            .pairs = double(prompt) * double(prompt + 1) / 2,
                            .kv_tokens = double(prompt),
                            .heads = 64,
                            .kv_heads = 8,
                            .key_dim = 128,
                            .value_dim = 128,
                            .kv = kv};
  return kernel_time(Family::attn_prefill, op, device, &toys::transfer()).total().value;
}

TEST(Exponentials, MoreOfThemAreNeverSlowerAndNeverMoreThanThatMuchFaster) {
  for (const char* name : {"a100-80gb-sxm", "h100-sxm", "b200-sxm", "l40s", "mi300x"}) {
    Device device = toys::shipped("devices", name).device;
    for (const std::int64_t prompt : {128, 1024, 8192, 65536}) {
      double before = attention_of(device, prompt, Dtype::bf16);
      for (const double times : {1.5, 2.0, 8.0}) {
        Device more = device;
        more.exponentials = times * device.exponentials;
        const double time = attention_of(more, prompt, Dtype::bf16);
        EXPECT_LE(time, before * (1 + 1e-12)) << name << " " << prompt << " " << times;
        EXPECT_GE(time, attention_of(device, prompt, Dtype::bf16) / times) << name << " " << prompt;
        before = time;
      }
    }
  }
}

// A long prompt on Blackwell spends a good part of its attention on them, and its steps of decodes next to nothing.
TEST(Exponentials, CountInPromptsAlone) {
  Scenario scenario = toys::shipped("models", "llama-3.1-70b");
  scenario.device = toys::shipped("devices", "b200-sxm").device;
  scenario.parallel.tp = 4;
  const auto time = [&](StepPhase phase, double exponentials) {
    Scenario point = scenario;
    point.device.exponentials = exponentials;
    point.step = {.phase = phase, .batch = 1, .context = 16384, .prompt = 16384};
    const Outcome outcome = evaluate(point, toys::transfer_resources());
    EXPECT_EQ(outcome.status, Status::ok) << outcome.reason;
    return outcome.metrics;
  };
  const Metrics prompt = time(StepPhase::prefill, 16), twice = time(StepPhase::prefill, 32);
  EXPECT_LT(twice.attention_time, prompt.attention_time * 0.9);
  EXPECT_NEAR(twice.compute_time / prompt.compute_time, 1, 1e-12);
  EXPECT_EQ(time(StepPhase::decode, 16).step_time, time(StepPhase::decode, 32).step_time);
}

// Attention over DeepSeek-V3's heads in fp8 gained a third on GB300 over GB200, by the maker's own measurement.
TEST(Exponentials, BlackwellUltraHasTwiceAsMany) {
  for (const char* name : {"b200-sxm", "gb200", "h100-sxm", "a100-80gb-sxm", "l40s"}) {
    EXPECT_EQ(toys::shipped("devices", name).device.exponentials, 16) << name;
  }
  for (const char* name : {"b300-sxm", "gb300"}) {
    EXPECT_EQ(toys::shipped("devices", name).device.exponentials, 32) << name;
  }
  Device ultra = toys::shipped("devices", "gb200").device;
  const double before = attention_of(ultra, 16384, Dtype::fp8);
  ultra.exponentials = 32;
  const double gain = before / attention_of(ultra, 16384, Dtype::fp8);
  EXPECT_GT(gain, 1.1);
  EXPECT_LT(gain, 1.6);
}

}  // namespace
}  // namespace engine
