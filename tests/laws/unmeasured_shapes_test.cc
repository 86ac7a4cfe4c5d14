// What fits say of shapes far from those that were measured: whatever multiplies does so on one kind of units, and whatever reads
// weights reads them from one memory.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine/comm/collective_time.h"
#include "engine/evaluate.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/batch_shape.h"
#include "tests/support/calibrations.h"
#include "tests/support/shipped.h"

namespace engine {
namespace {

// To some percent: a product never has all of its tiles in whole waves.
constexpr double kRounding = 1.05;

double rate_of(Family family, const Op& op, const Device& device) {
  const KernelTime time = kernel_time(family, op, device, &toys::transfer());
  return (time.flops / time.total()).value;
}

struct Formats {
  Dtype weights, activations;
  std::int64_t group;
};

// What large products reach where both operands have the format that is computed in. The longest are not the fastest: boards get hot.
double product_rate(const Device& device, const Formats& formats) {
  const Dtype computed = compute_dtype(formats.weights, formats.activations);
  double most = 0;
  for (std::int64_t rows = 1024; rows <= 1 << 20; rows *= 2) {
    const Gemm op{.m = rows,
                  .n = 16384,
                  .k = 16384,
                  .weights = computed,
                  .activations = computed,
                  .group = formats.group};
    most = std::max(most, rate_of(Family::gemm, op, device));
  }
  return most;
}

std::vector<Device> fitted_devices() {
  std::vector<Device> fitted;
  for (const Device& device : toys::shipped_devices()) {
    if (choose_set(device) != ParameterSet::none) fitted.push_back(device);
  }
  return fitted;
}

constexpr Formats kFormats[] = {
    {Dtype::bf16, Dtype::bf16, 128}, {Dtype::fp8, Dtype::fp8, 1 << 20},
    {Dtype::fp8, Dtype::fp8, 128},   {Dtype::fp4, Dtype::fp4, 16},
    {Dtype::int4, Dtype::bf16, 128}, {Dtype::fp4, Dtype::bf16, 32},
    {Dtype::fp4, Dtype::fp8, 32},
};

TEST(UnmeasuredShapes, ExpertsAreNoFasterThanTheLargestProducts) {
  struct Mixture {
    std::int64_t hidden, inner, top_k, experts;
  };
  for (const Device& device : fitted_devices()) {
    for (const Formats& formats : kFormats) {
      const Dtype computed = compute_dtype(formats.weights, formats.activations);
      if (matrix_peak(device, computed).value <= 0) continue;
      const double most = product_rate(device, formats) * kRounding;
      for (const Mixture& mixture : {Mixture{4096, 14336, 2, 8},
                                     {8192, 32768, 2, 16},
                                     {2048, 768, 8, 128},
                                     {512, 128, 1, 16}}) {
        for (const double tokens : {1.0, 256.0, 16384.0, double(1 << 20)}) {
          const Moe op{.tokens = tokens,
                       .hidden = mixture.hidden,
                       .intermediate = mixture.inner,
                       .top_k = mixture.top_k,
                       .experts = mixture.experts,
                       .local_experts = mixture.experts,
                       .balanced = true,
                       .weights = formats.weights,
                       .activations = formats.activations,
                       .group = formats.group};
          EXPECT_LE(rate_of(Family::moe, op, device), most)
              << device.name << " " << name_of(formats.weights) << " "
              << name_of(formats.activations) << " " << mixture.hidden << " " << tokens;
        }
      }
    }
  }
}

TEST(UnmeasuredShapes, PromptsAreNoFasterThanTheLargestProducts) {
  for (const Device& device : fitted_devices()) {
    for (const Formats& formats : {kFormats[0], kFormats[1]}) {
      const double most =
          std::max(product_rate(device, formats), product_rate(device, kFormats[0]));
      for (const std::int64_t width : {64, 128, 256, 512}) {
        for (const double prompt : {1024.0, 32768.0, double(1 << 20)}) {
          for (const Dtype kv : {Dtype::bf16, Dtype::fp8}) {
            const AttentionPrefill op{.sequences = 1,
                                      .tokens = prompt,
                                      .pairs = causal_pairs(prompt, 0, 0),
                                      .kv_tokens = prompt,
                                      .heads = 64,
                                      .kv_heads = 8,
                                      .key_dim = width,
                                      .value_dim = width,
                                      .kv = kv,
                                      .activations = formats.activations};
            EXPECT_LE(rate_of(Family::attn_prefill, op, device), most * kRounding)
                << device.name << " " << width << " " << prompt << " " << name_of(kv);
          }
        }
      }
    }
  }
}

TEST(UnmeasuredShapes, ExpandedWeightsAreNoFasterThanTheLargestProducts) {
  for (const Device& device : fitted_devices()) {
    const double most = product_rate(device, kFormats[0]) * kRounding;
    for (const Dtype weights : {Dtype::int8, Dtype::int4}) {
      for (std::int64_t rows = 1; rows <= 1 << 20; rows *= 4) {
        for (const std::int64_t columns : {4096, 262144}) {
          const Gemm op{.m = rows, .n = columns, .k = 8192, .weights = weights};
          EXPECT_LE(rate_of(Family::gemm, op, device), most)
              << device.name << " " << name_of(weights) << " " << rows << " x " << columns;
        }
      }
    }
  }
}

// Marlin's matrix instructions are Ampere's: a multiprocessor does as many a clock on every later generation.
TEST(UnmeasuredShapes, ExpandedIntegersOfExpertsFollowClocksAndMultiprocessors) {
  const Moe op{.tokens = 1 << 18,
               .hidden = 4096,
               .intermediate = 14336,
               .top_k = 2,
               .experts = 8,
               .local_experts = 8,
               .balanced = true,
               .weights = Dtype::int4};
  for (const char* name : {"a100-80gb-sxm", "h100-sxm", "h200-sxm", "b200-sxm", "b300-sxm"}) {
    const Device device = toys::shipped("devices", name).device;
    const double clocks = device.clock.value * double(device.multiprocessors);
    const double of_a_clock = rate_of(Family::moe, op, device) / clocks;
    EXPECT_LE(of_a_clock, 2048 * 0.75) << name;
    EXPECT_GE(of_a_clock, 2048 * 0.4) << name;
  }
}

// Tables repeat calls; in a step other layers' weights were read since, and these come from memory.
TEST(UnmeasuredShapes, AbsorbedMatricesAreReadNoFasterThanMemoryAllows) {
  for (const Device& device : fitted_devices()) {
    for (const Dtype weights : {Dtype::bf16, Dtype::fp8}) {
      for (const std::int64_t heads : {1, 16, 128}) {
        const Gemm op{
            .m = 1, .n = 512, .k = 128, .batch = heads, .weights = weights, .activations = weights};
        const double bytes = double(heads) * 512 * 128 * bytes_of(weights);
        for (const Family family : {Family::mla_gen_pre, Family::mla_gen_post}) {
          EXPECT_GE(kernel_time(family, op, device, &toys::transfer()).total().value,
                    bytes / device.memory_bandwidth.value * (1 - 1e-9))
              << device.name << " " << heads;
        }
      }
    }
  }
}

Fabric nodes_of_eight(const Device& device) {
  Fabric fabric = fabric_of(Cluster{}, device);
  fabric.devices_per_node = 8;
  return fabric;
}

// A further level of a tree of nodes is a further way over the network, whoever measured two nodes.
TEST(UnmeasuredShapes, MoreNodesAreNeverFaster) {
  for (const Device& device : toys::shipped_devices()) {
    const bool in_nodes = device.scale_up.topology != Topology::none;
    if (!in_nodes || device.scale_out.topology == Topology::none) continue;
    const Fabric fabric = nodes_of_eight(device);
    for (const Pattern pattern :
         {Pattern::all_reduce, Pattern::all_gather, Pattern::reduce_scatter, Pattern::all_to_all}) {
      for (double bytes = 1; bytes <= 1e10; bytes *= 100) {
        Seconds before{0};
        for (std::int64_t ranks = 16; ranks <= 65536; ranks *= 2) {
          const Collective op{.pattern = pattern, .bytes = bytes, .ranks = ranks};
          const Seconds time = collective_time(op, fabric, device, &toys::transfer()).total();
          EXPECT_GE(time, before * (1 - 1e-9))
              << device.name << " " << int(pattern) << " " << bytes << " " << ranks;
          before = time;
        }
      }
    }
  }
}

// Arithmetic that nobody measured is the same however fast weights arrive, and draws no more power beside a faster memory.
TEST(UnmeasuredShapes, ExpertsWithNarrowWeightsAreNeverSlowerBesideAFasterMemory) {
  Scenario point = toys::shipped("models", "mixtral-8x7b");
  point.quant.weights = Dtype::int4;
  point.step.phase = StepPhase::prefill;
  for (const Device& device : fitted_devices()) {
    point.device = device;
    point.device.memory_capacity = Bytes{2e12};
    for (const std::int64_t prompt : {100, 900, 8000}) {
      point.step.prompt = prompt;
      double before = std::numeric_limits<double>::infinity();
      for (const double faster : {3.0, 5.0, 10.0, 40.0}) {
        point.device.memory_bandwidth = device.memory_bandwidth * faster;
        const Outcome outcome = evaluate(point, toys::transfer_resources());
        if (outcome.status != Status::ok) break;  // no such arithmetic
        // To a part in a hundred: products of other layers change their tiles.
        EXPECT_LE(outcome.metrics.step_time.value, before * 1.01)
            << device.name << ", " << prompt << " tokens, memory " << faster << " times as fast";
        before = outcome.metrics.step_time.value;
      }
    }
  }
}

}  // namespace
}  // namespace engine
