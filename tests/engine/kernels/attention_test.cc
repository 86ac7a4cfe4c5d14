#include "engine/kernels/attention.h"

#include <gtest/gtest.h>

#include <utility>

#include "engine/model/batch_shape.h"
#include "tests/support/calibrations.h"
#include "tests/support/shipped.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

TEST(AttentionDecode, ReadsKeysAndValuesOnce) {
  const AttentionDecode op{.sequences = 10, .kv_tokens = 100'000, .heads = 32, .kv_heads = 8};
  const KernelTime time = attention_decode_time(op, toys::gpu());
  EXPECT_DOUBLE_EQ(time.memory.value, 100'000.0 * 8 * 256 * 2 / 1e12);
  EXPECT_EQ(time.bound(), Bound::memory);
}

TEST(AttentionDecode, AnEightBitCacheHalvesTheTraffic) {
  AttentionDecode op{.sequences = 10, .kv_tokens = 100'000, .heads = 32, .kv_heads = 8};
  const KernelTime wide = attention_decode_time(op, toys::gpu());
  op.kv = Dtype::fp8;
  EXPECT_DOUBLE_EQ(attention_decode_time(op, toys::gpu()).memory.value, wide.memory.value / 2);
}

// An engine whose tables hold kernels that do not split keys: they may be slow where sequences are few and long, and cannot be
// where every multiprocessor has a sequence of its own.
TEST(AttentionDecode, TheIntervalReachesNoFurtherThanKernelsThatSplitNothing) {
  Calibration slow = toys::transfer();
  slow.attn_decode.each_edit([](ParameterSet, FittedSet<DecodeFit>& set) { set.high = 20; });
  const Device device = toys::shipped("devices", "h100-sxm").device;
  AttentionDecode op{.sequences = 1, .kv_tokens = 100'000, .heads = 32, .kv_heads = 8};
  EXPECT_GT(attention_decode_time(op, device, Family::attn_decode, &slow).high, 5);
  double before = 20;
  for (; op.sequences <= 512; op.sequences *= 2) {
    op.kv_tokens = 4000.0 * double(op.sequences);
    const KernelTime time = attention_decode_time(op, device, Family::attn_decode, &slow);
    EXPECT_LE(time.high, before) << op.sequences;
    EXPECT_GE(time.high, 2) << op.sequences;
    EXPECT_EQ(time.time,
              attention_decode_time(op, device, Family::attn_decode, &toys::transfer()).time);
    before = time.high;
  }
  EXPECT_EQ(before, 2);
}

TEST(AttentionDecode, ALatentIsReadOnceForKeysAndValues) {
  const AttentionDecode op{.sequences = 1,
                           .kv_tokens = 100'000,
                           .heads = 128,
                           .kv_heads = 1,
                           .key_dim = 576,
                           .value_dim = 512,
                           .values_in_keys = true};
  EXPECT_DOUBLE_EQ(attention_decode_time(op, toys::gpu()).memory.value, 100'000.0 * 576 * 2 / 1e12);
}

TEST(AttentionPrefill, WorkIsQuadraticInTheprompt) {
  const auto time = [](double tokens) {
    return attention_prefill_time({.sequences = 1,
                                   .tokens = tokens,
                                   .pairs = causal_pairs(tokens, 0, 0),
                                   .kv_tokens = tokens,
                                   .heads = 100,
                                   .kv_heads = 10},
                                  toys::gpu());
  };
  EXPECT_NEAR(time(65536).compute / time(32768).compute, 4, 0.001);
  EXPECT_EQ(time(65536).bound(), Bound::compute);
}

// A short new prompt over a long cache has few tiles of queries: multiprocessors without one take parts of the keys, as in decodes.
TEST(AttentionPrefill, FewQueriesShareTheirCachedKeysOut) {
  const Device device = toys::shipped("devices", "h100-sxm").device;
  const auto time = [&](std::int64_t sequences, double cached, const Calibration* calibration) {
    constexpr double query = 16;
    const AttentionPrefill op{.sequences = sequences,
                              .tokens = double(sequences) * query,
                              .pairs = double(sequences) * causal_pairs(query, cached, 0),
                              .kv_tokens = double(sequences) * (cached + query),
                              .heads = 32,
                              .kv_heads = 8,
                              .shares_keys = true};
    return attention_prefill_time(op, device, Family::attn_prefill, calibration).time.value;
  };
  for (const Calibration* calibration :
       {&toys::transfer(), static_cast<const Calibration*>(nullptr)}) {
    // Eight tiles of packed heads, or 32: sixteen such prompts are work for all multiprocessors, one is for as many in parts.
    EXPECT_LT(time(1, 100'000, calibration), time(16, 100'000, calibration) / 3);
    double before = 0;
    for (double cached = 0; cached < 200'000; cached += 500) {
      const double now = time(1, cached, calibration);
      EXPECT_GE(now, before * (1 - 1e-9)) << cached;
      before = now;
    }
    // No part is shorter than what a kernel reads at once: nothing is won on a short cache.
    EXPECT_GT(time(1, 200, calibration), time(1, 0, calibration));
  }
}

// An engine stores keys and values by a kernel of its own, before attention: what 16 bits computed is read, and written as cached.
TEST(AttentionPrefill, StoringKeysTakesTheirBytes) {
  const Device device = toys::gpu();
  Calibration calibration;
  FittedSet<PrefillFit>& set = calibration.attn_prefill.edit(ParameterSet::own);
  set.fit.memory_share = 0.5;
  AttentionPrefill op{.sequences = 1,
                      .tokens = 8192,
                      .pairs = causal_pairs(8192, 0, 0),
                      .kv_tokens = 8192,
                      .heads = 32,
                      .kv_heads = 8};
  for (const auto& [cache, bytes] :
       {std::pair{Dtype::bf16, 2.0 + 2}, std::pair{Dtype::fp8, 2.0 + 1}}) {
    op.kv = cache;
    const auto time = [&](bool stores) {
      AttentionPrefill asked = op;
      asked.stores_kv = stores;
      return attention_prefill_time(asked, device, Family::attn_prefill, &calibration).time.value;
    };
    EXPECT_NEAR(time(true) - time(false), 8192 * 8 * 256 * bytes / 0.5e12, 1e-9);
  }
}

// All that begins within a decode's call takes as many launches on every device; half of the rest of its floor follows the clock.
TEST(AttentionDecode, AShortCallTakesAsManyLaunchesOnEveryDevice) {
  Calibration calibration;
  FittedSet<DecodeFit>& set = calibration.attn_decode.edit(ParameterSet::own);
  set.launch = 2;
  set.fit.floor_clocks = 18.3;
  Device device = toys::gpu();
  const auto floor = [&](double launch, double clock) {
    device.launch_latency = Seconds{launch * 1e-6};
    device.clock = Hertz{clock * 1e9};
    const AttentionDecode op{.sequences = 1, .kv_tokens = 1, .heads = 8, .kv_heads = 8};
    return attention_decode_time(op, device, Family::attn_decode, &calibration).launch.value;
  };
  EXPECT_NEAR(floor(2, 1.83), 10e-6, 1e-12);
  EXPECT_NEAR(floor(1, 1.83), 5e-6, 1e-12);
  EXPECT_NEAR(floor(2, 3.66), 7.5e-6, 1e-12);
}

TEST(CausalPairs, CountsWhatTheMaskLeaves) {
  EXPECT_DOUBLE_EQ(causal_pairs(4, 0, 0), 1 + 2 + 3 + 4);
  EXPECT_DOUBLE_EQ(causal_pairs(2, 3, 0), 4 + 5);
  EXPECT_DOUBLE_EQ(causal_pairs(4, 0, 2), 1 + 2 + 2 + 2);
  EXPECT_DOUBLE_EQ(causal_pairs(3, 1, 2), 2 + 2 + 2);
  EXPECT_DOUBLE_EQ(causal_pairs(3, 9, 2), 2 + 2 + 2);
}

}  // namespace
}  // namespace engine
