// Facts about single families, with numbers one can work out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/random.h"
#include "engine/kernels/kernel_time.h"
#include "engine/kernels/moe.h"
#include "engine/model/expert_places.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

KernelTime roofline(Family family, const Op& op) {
  return kernel_time(family, op, toys::gpu(), nullptr);
}

Device hopper() {
  Device device = toys::gpu();
  device.architecture = "Hopper";
  return device;
}

TEST(Moe, TouchesWhatTopKOfEChoose) {
  EXPECT_NEAR(experts_touched({.tokens = 1, .top_k = 2, .experts = 16, .local_experts = 16}), 2,
              1e-9);
  EXPECT_NEAR(experts_touched({.tokens = 2, .top_k = 2, .experts = 16, .local_experts = 8}),
              8 * (1 - 0.875 * 0.875), 1e-9);
}

// Tokens that draw their experts one after the other, popular ones more often: the least popular ones stay cold, and are not read.
TEST(Moe, FavouritesLeaveOthersUntouched) {
  Moe op{.tokens = 64, .top_k = 4, .experts = 128, .local_experts = 128};
  EXPECT_NEAR(favourites_touched(op), experts_touched(op), 1e-9);
  for (const double skew : {0.3, 1.0, 1.5}) {
    op.skew = skew;
    constexpr int rounds = 50;
    double touched = 0;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      std::set<std::int64_t> met;
      for (std::uint64_t token = 0; token < 64; ++token) {
        // A token's first choices are the largest of logarithms of loads, each with a Gumbel value of its own.
        std::vector<std::pair<double, std::int64_t>> order;
        for (std::int64_t expert = 0; expert < op.experts; ++expert) {
          const double log_load =
              skew * std::log(largest_load(op)) * (double(expert) + 0.5) / double(op.experts);
          const double drawn =
              uniform(7, Stream::sampling, (round * 64 + token) * 128 + std::uint64_t(expert));
          order.emplace_back(log_load - std::log(-std::log(drawn)), expert);
        }
        std::ranges::sort(order, std::greater<>{});
        for (int i = 0; i < 4; ++i) met.insert(order[std::size_t(i)].second);
      }
      touched += double(met.size()) / rounds;
    }
    EXPECT_NEAR(favourites_touched(op), touched, 0.03 * touched) << skew;
    EXPECT_LT(favourites_touched(op), experts_touched(op)) << skew;
  }
}

// So where no kernel was measured, a skewed decode reads fewer weights than an even one.
TEST(Moe, FavouritesSaveTrafficOnADeviceThatHasAllExperts) {
  Moe op{.tokens = 64,
         .hidden = 4096,
         .intermediate = 1024,
         .top_k = 4,
         .experts = 128,
         .local_experts = 128};
  const KernelTime even = roofline(Family::moe, op);
  op.skew = 1;
  EXPECT_LT(roofline(Family::moe, op).memory, even.memory * 0.9);
}

TEST(Moe, ReadsEveryTouchedExpertOnce) {
  const Moe op{.tokens = 100,
               .hidden = 4096,
               .intermediate = 1024,
               .top_k = 2,
               .experts = 8,
               .local_experts = 8};
  EXPECT_NEAR(roofline(Family::moe, op).memory.value, 8 * 3 * 4096.0 * 1024 * 2 / 1e12, 1e-12);
  EXPECT_DOUBLE_EQ(roofline(Family::moe, op).flops.value, 2 * 3 * 200.0 * 4096 * 1024);
}

TEST(Moe, SkewMakesTheFullestDeviceSlower) {
  Moe op{.tokens = 4096,
         .hidden = 4096,
         .intermediate = 1024,
         .top_k = 8,
         .experts = 64,
         .local_experts = 8};
  double before = 0;
  for (const double skew : {0.0, 0.5, 1.01, 1.2}) {
    op.skew = skew;
    const double time = kernel_time(Family::moe, op, hopper(), &toys::transfer()).total().value;
    EXPECT_GE(time, before) << skew;
    before = time;
  }
}

TEST(Copy, InsideTheDeviceReadsAndWrites) {
  const KernelTime time = roofline(Family::copy, Copy{.bytes = 1e9});
  EXPECT_NEAR(time.memory.value, 2e9 / 1e12, 2e-5);
  EXPECT_DOUBLE_EQ(
      roofline(Family::copy_h2d, Copy{.bytes = 1e9, .path = CopyPath::host_to_device}).memory.value,
      1e9 / 20e9);
}

TEST(Lora, ReadsEachAdapterOnce) {
  const Lora op{.tokens = 64, .adapters = 8, .rank = 16, .input = 4096, .output = 4096};
  const KernelTime time = roofline(Family::lora, op);
  Lora more = op;
  more.adapters = 16;
  EXPECT_DOUBLE_EQ((roofline(Family::lora, more).memory - time.memory).value,
                   8 * 16 * 8192.0 * 2 / 1e12);
  EXPECT_DOUBLE_EQ(time.flops.value, 2 * 64.0 * 16 * 8192);
}

TEST(Scan, ReadsAndWritesItsState) {
  const Scan op{.sequences = 10, .tokens = 10, .heads = 32, .head_dim = 64, .state = 128};
  EXPECT_DOUBLE_EQ(roofline(Family::linear_attention, op).memory.value,
                   10 * 32 * 64 * 128 * 8.0 / 1e12 / pace_of(ScanRule::add).of_bandwidth);
}

// One chunk after another, at the clock of the device, beside what of the arithmetic goes on meanwhile.
TEST(Scan, ChunksOfADeltaRuleWaitForOneAnother) {
  const Scan op{.rule = ScanRule::delta, .tokens = 6400, .heads = 8, .head_dim = 128, .state = 128};
  const Device device = hopper();
  const ScanPace& pace = pace_of(ScanRule::delta);
  const KernelTime time = kernel_time(Family::linear_attention, op, device, nullptr);
  EXPECT_DOUBLE_EQ(time.launch.value, pace.prompt_kernels * device.launch_latency.value +
                                          100 * pace.chunk_cycles / device.clock.value -
                                          pace.beside_chunks * time.compute.value);
  // Many heads keep the device busy for longer than chunks wait.
  Scan wide = op;
  wide.heads = 256;
  EXPECT_DOUBLE_EQ(kernel_time(Family::linear_attention, wide, device, nullptr).launch.value,
                   pace.prompt_kernels * device.launch_latency.value);
}

TEST(Convolution, PassesOnceOverItsTokens) {
  const Convolution op{.tokens = 1e6, .channels = 1000, .width = 4};
  EXPECT_NEAR(roofline(Family::convolution, op).memory.value,
              4e9 / 1e12 / Convolution::kOfBandwidth, 2e-5);
}

TEST(Quantize, CostsApartAboutWhatItCostsInsideAProduct) {
  Gemm gemm{.m = 512, .n = 4096, .k = 4096};
  gemm.weights = gemm.activations = Dtype::fp8;
  const auto time = [](Family family, const Op& op) {
    return kernel_time(family, op, hopper(), &toys::transfer()).total().value;
  };
  const double apart =
      time(Family::gemm, gemm) + time(Family::quantize, Quantize{.rows = 512, .width = 4096});
  gemm.quantizes_input = true;
  EXPECT_NEAR(time(Family::gemm, gemm) / apart, 1, 0.25);
}

TEST(AttentionDecode, AServedModelFindsNoKeysInTheCache) {
  AttentionDecode op{.sequences = 4, .kv_tokens = 4 * 500, .heads = 32, .kv_heads = 8};
  const KernelTime cold = kernel_time(Family::attn_decode, op, hopper(), &toys::transfer());
  op.warm = true;
  const KernelTime warm = kernel_time(Family::attn_decode, op, hopper(), &toys::transfer());
  EXPECT_LT(warm.memory, cold.memory);
  EXPECT_LE(warm.total(), cold.total());
}

TEST(AttentionPrefill, UnequalPromptsTakeLongerThanEqualOnes) {
  AttentionPrefill equal{.sequences = 2,
                         .tokens = 8192,
                         .pairs = 2 * 4096.0 * 4097 / 2,
                         .kv_tokens = 8192,
                         .heads = 32,
                         .kv_heads = 8};
  AttentionPrefill unequal = equal;
  unequal.pairs = 8064.0 * 8065 / 2 + 128.0 * 129 / 2;
  const Device device = hopper();
  EXPECT_GT(
      kernel_time(Family::attn_prefill, unequal, device, &toys::transfer()).total().value,
      1.4 * kernel_time(Family::attn_prefill, equal, device, &toys::transfer()).total().value);
}

TEST(KernelTime, OutsideTheEnvelopeIsFlagged) {
  const Device device = hopper();
  const auto flagged = [&device](std::int64_t m) {
    return kernel_time(Family::gemm, Gemm{.m = m, .n = 4096, .k = 4096}, device, &toys::transfer())
        .extrapolated;
  };
  EXPECT_FALSE(flagged(64));
  EXPECT_TRUE(flagged(10'000'000));
  Device foreign = device;
  foreign.architecture = "CDNA 3";
  EXPECT_TRUE(
      kernel_time(Family::gemm, Gemm{.m = 64, .n = 4096, .k = 4096}, foreign, &toys::transfer())
          .extrapolated);
}

TEST(KernelTime, ProductsOf32BitsReachAShareOfThePeak) {
  Gemm gemm{.m = 8192, .n = 8192, .k = 8192};
  gemm.weights = gemm.activations = Dtype::fp32;
  Device device = hopper();
  device.peak.fp32 = device.vector_peak = FlopsPerSecond{1e14};
  const KernelTime bound = kernel_time(Family::gemm, gemm, device, nullptr);
  EXPECT_EQ(bound.tier, Tier::roofline);
  const KernelTime reached = kernel_time(Family::gemm, gemm, device, &toys::transfer());
  EXPECT_EQ(reached.tier, Tier::transfer);
  EXPECT_EQ(reached.least, bound.least);
  EXPECT_NEAR(reached.compute / bound.compute, 1 / 0.77, 1e-9);
}

}  // namespace
}  // namespace engine
