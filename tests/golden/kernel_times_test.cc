// Times of a few shapes of our own on three devices, by the shipped parameters. A change here is a
// change of the model: say why in engine/MODEL_CHANGES.md, then copy the table the test prints.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "engine/comm/collective_time.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/batch_shape.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// Datasheet figures of the three devices the parameters were fitted on.
Device device_like(const char* architecture, double processors, double ghz, double tflops,
                   double tbs, double l2_mib, double launch_us) {
  Device device = toys::gpu();
  device.architecture = architecture;
  device.shared_memory = Bytes{164.0 * 1024};
  device.multiprocessors = std::int64_t(processors);
  device.clock = Hertz{ghz * 1e9};
  device.rated_clock = device.clock;
  device.rated_multiprocessors = device.multiprocessors;
  device.peak.bf16 = device.peak.fp16 = FlopsPerSecond{tflops * 1e12};
  device.peak.fp8 = device.peak.int8 = FlopsPerSecond{2 * tflops * 1e12};
  device.memory_bandwidth = BytesPerSecond{tbs * 1e12};
  device.l2_capacity = Bytes{l2_mib * 1048576};
  device.l2_bandwidth = BytesPerSecond{processors * 64 * ghz * 1e9};
  device.launch_latency = Seconds{launch_us * 1e-6};
  device.scale_up.bandwidth = BytesPerSecond{450e9};
  return device;
}

AttentionPrefill prompt(double query, double cached) {
  return {.sequences = 1,
          .tokens = query,
          .pairs = causal_pairs(query, cached, 0),
          .kv_tokens = query + cached,
          .heads = 32,
          .kv_heads = 8};
}

std::string table() {
  const Device devices[] = {device_like("Ampere", 108, 1.41, 312, 2.039, 40, 2.4),
                            device_like("Hopper", 132, 1.83, 989.4, 3.35, 50, 2.4),
                            device_like("Blackwell", 148, 1.85, 2250, 8, 126, 1.8),
                            device_like("Ada", 142, 2.52, 362, 0.864, 96, 2.2)};
  Gemm fp8{.m = 300, .n = 5000, .k = 7000};
  fp8.weights = fp8.activations = Dtype::fp8;
  const AttentionDecode latent{.sequences = 20,
                               .kv_tokens = 20 * 3000,
                               .heads = 16,
                               .kv_heads = 1,
                               .key_dim = 576,
                               .value_dim = 512,
                               .values_in_keys = true};
  const std::pair<Family, Op> calls[] = {
      {Family::gemm, Gemm{.m = 3, .n = 5000, .k = 7000}},
      {Family::gemm, Gemm{.m = 300, .n = 5000, .k = 7000}},
      {Family::gemm, Gemm{.m = 5000, .n = 5000, .k = 7000}},
      {Family::gemm, fp8},
      {Family::attn_prefill, prompt(900, 0)},
      {Family::attn_prefill, prompt(900, 5000)},
      {Family::attn_decode,
       AttentionDecode{.sequences = 20, .kv_tokens = 20 * 3000, .heads = 32, .kv_heads = 8}},
      {Family::mla_decode, latent},
      {Family::mla_gen_pre, Gemm{.m = 20, .n = 512, .k = 128, .batch = 16}},
      {Family::moe, Moe{.tokens = 70,
                        .hidden = 4000,
                        .intermediate = 1500,
                        .top_k = 4,
                        .experts = 60,
                        .local_experts = 60}},
      {Family::norm, Elementwise{.rows = 500, .resident_bytes = 500 * 4096 * 8.0}},
      {Family::act, Elementwise{.rows = 500, .resident_bytes = 500 * 12000 * 6.0}},
      {Family::sample, Elementwise{.rows = 20, .resident_bytes = 20 * 128000 * 2.0}},
  };
  std::string text;
  for (const auto& [family, op] : calls) {
    text += fmt::format("{:<13}", name_of(family));
    for (const Device& device : devices) {
      const KernelTime time = kernel_time(family, op, device, &toys::transfer());
      text += fmt::format(" {:>8} {:>9.3f}", name_of(time.bound()), time.total().value * 1e6);
    }
    text += "\n";
  }
  for (const double bytes : {2e4, 2e6, 2e8}) {
    text += fmt::format("{:<13}", "all_reduce");
    for (const Device& device : devices) {
      const CollectiveTime time = collective_time(
          {.bytes = bytes, .ranks = 8}, fabric_of(Cluster{}, device), device, &toys::transfer());
      text += fmt::format(" {:>8} {:>9.3f}", name_of(time.algorithm), time.total().value * 1e6);
    }
    text += "\n";
  }
  return text;
}

TEST(Golden, KernelTimes) {
  const std::string path = paths::source("tests/golden/kernel_times.txt");
  EXPECT_EQ(table(), toys::file_text(path)) << "now:\n" << table();
}

}  // namespace
}  // namespace engine
