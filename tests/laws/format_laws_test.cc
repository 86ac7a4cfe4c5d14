// Laws of number formats, on every device of the library.
#include <gtest/gtest.h>

#include <vector>

#include "engine/evaluate.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/moe.h"
#include "tests/support/calibrations.h"
#include "tests/support/serving_toys.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr Dtype kFormats[] = {Dtype::fp32, Dtype::tf32, Dtype::bf16, Dtype::fp16,
                              Dtype::fp8,  Dtype::int8, Dtype::int4, Dtype::fp4};

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

// Products of one layer of Llama 3.1 8B or 70B on one of `devices` that share it.
std::vector<Gemm> products(std::int64_t rows, std::int64_t devices) {
  const std::int64_t tp = devices;
  return {{.m = rows, .n = 6144 / tp, .k = 4096},  {.m = rows, .n = 4096, .k = 4096 / tp},
          {.m = rows, .n = 28672 / tp, .k = 4096}, {.m = rows, .n = 4096, .k = 14336 / tp},
          {.m = rows, .n = 10240 / tp, .k = 8192}, {.m = rows, .n = 8192, .k = 8192 / tp},
          {.m = rows, .n = 57344 / tp, .k = 8192}, {.m = rows, .n = 8192, .k = 28672 / tp}};
}

// Experts of Mixtral 8x7B, Qwen3 30B-A3B and gpt-oss 20B, likewise.
std::vector<Moe> experts(double tokens, std::int64_t devices) {
  const auto mixture = [&](std::int64_t hidden, std::int64_t inner, std::int64_t top_k,
                           std::int64_t all) {
    return Moe{.tokens = tokens,
               .hidden = hidden,
               .intermediate = inner / devices,
               .top_k = top_k,
               .experts = all,
               .local_experts = all,
               .skew = 1};
  };
  return {mixture(4096, 14336, 2, 8), mixture(2048, 768, 8, 128), mixture(2880, 2880, 4, 32)};
}

double seconds(const Gemm& op, const Device& device) {
  return gemm_time(op, device, &toys::transfer()).total().value;
}
double seconds(const Moe& op, const Device& device) {
  return moe_time(op, device, &toys::transfer()).total().value;
}

// From wide to narrow; formats beside each other have the same bytes.
constexpr Dtype kWeightsAlone[] = {Dtype::fp8, Dtype::int8, Dtype::int4, Dtype::fp4};

bool is_narrower(Dtype one, Dtype other) { return bytes_of(one) < bytes_of(other); }

// The generation's own calls may say otherwise: libraries start some kernels more slowly than others.
bool was_measured(const Gemm& op, const Device& device) {
  const auto format = static_cast<std::size_t>(gemm_format(op.weights, op.activations, op.group));
  return measures_generation(toys::transfer().gemm[format], choose_set(device));
}
bool was_measured(const Moe& op, const Device& device) {
  const auto measures = [&](MoeFormat format) {
    const auto& sets = toys::transfer().moe[static_cast<std::size_t>(format)];
    return measures_generation(sets, choose_set(device));
  };
  return bytes_of(op.weights) < 1 && (measures(moe_format(op)) || measures(MoeFormat::int4_wo));
}

template <class Op>
void expect_narrow_is_no_slower(Op op, const Device& device) {
  for (const Dtype weights : kWeightsAlone) {
    Op narrow = op;
    narrow.weights = weights;
    if (was_measured(narrow, device)) continue;
    for (const Dtype wider : {Dtype::bf16, Dtype::fp8}) {
      if (!is_narrower(weights, wider)) continue;
      op.weights = wider;
      EXPECT_LE(seconds(narrow, device), seconds(op, device) * (1 + 1e-9))
          << device.name << " " << name_of(weights) << " against " << name_of(wider);
    }
  }
}

// One row reads weights and does next to nothing with them: those of fewer bytes are there sooner.
TEST(FormatLaws, NarrowWeightsAreNoSlowerForOneRow) {
  for (const Device& device : toys::shipped_devices()) {
    for (const std::int64_t devices : {1, 8}) {
      for (const Gemm& op : products(1, devices)) expect_narrow_is_no_slower(op, device);
      for (const Moe& op : experts(1, devices)) expect_narrow_is_no_slower(op, device);
    }
  }
}

// A kernel that expands weights runs on later generations as well: with more of everything, they are no slower. (Experts of four
// bits have measured kernels of each generation, and not the same ones.)
TEST(FormatLaws, LaterGenerationsExpandWeightsNoSlower) {
  struct Line {
    const char *earlier, *later;
  };
  for (const Line& line : {Line{"a100-80gb-sxm", "h100-sxm"}, Line{"a100-40gb-sxm", "h200-sxm"},
                           Line{"h100-sxm", "b200-sxm"}, Line{"h200-sxm", "b200-sxm"},
                           Line{"a100-80gb-sxm", "b200-sxm"}, Line{"h100-pcie", "h100-sxm"}}) {
    const Device earlier = toys::shipped("devices", line.earlier).device;
    const Device later = toys::shipped("devices", line.later).device;
    const auto expect_no_slower = [&](Gemm op) {
      for (const Dtype weights : kWeightsAlone) {
        op.weights = weights;
        EXPECT_LE(seconds(op, later), seconds(op, earlier) * (1 + 1e-9))
            << line.later << " after " << line.earlier << " " << name_of(weights);
      }
    };
    for (const std::int64_t devices : {1, 8}) {
      for (const std::int64_t rows : {1, 16, 256}) {
        for (const Gemm& op : products(rows, devices)) expect_no_slower(op);
      }
    }
  }
}

// Marlin expands floating-point weights of four bits as it does integers, in whole tiles, and runs nothing else.
TEST(FormatLaws, MarlinTakesFourBitsOfAnyKindInWholeTiles) {
  const Device device = toys::shipped("devices", "h100-sxm").device;
  const auto time = [&](const Moe& op) { return moe_time(op, device, &toys::transfer()); };
  for (const double tokens : {1.0, 64.0, 1024.0, 8192.0}) {
    Moe whole{.tokens = tokens,
              .hidden = 3072,
              .intermediate = 1536,
              .top_k = 4,
              .experts = 128,
              .local_experts = 128,
              .skew = 1,
              .weights = Dtype::int4,
              .group = 32};
    const double integers = time(whole).total().value;
    whole.weights = Dtype::fp4;
    EXPECT_NE(time(whole).total().value, integers);
    whole.kernels = FourBitExperts::marlin;
    EXPECT_EQ(time(whole).total().value, integers);
    // 2,880 x 1,440 is filled up to 3,072 x 1,536, of which no more is of use.
    Moe ragged = whole;
    ragged.hidden = 2880;
    ragged.intermediate = 1440;
    EXPECT_EQ(time(ragged).total().value, integers);
    EXPECT_DOUBLE_EQ(time(ragged).flops.value,
                     time(whole).flops.value * 2880 * 1440 / (3072 * 1536));
    for (const Dtype weights : {Dtype::bf16, Dtype::fp8}) {
      Moe wider = ragged;
      wider.weights = weights;
      Moe plain = wider;
      plain.kernels = FourBitExperts::own;
      EXPECT_EQ(time(wider).total().value, time(plain).total().value);
    }
  }
}

}  // namespace
}  // namespace engine
