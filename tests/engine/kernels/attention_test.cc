#include "engine/kernels/attention.h"

#include <gtest/gtest.h>

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

TEST(CausalPairs, CountsWhatTheMaskLeaves) {
  EXPECT_DOUBLE_EQ(causal_pairs(4, 0, 0), 1 + 2 + 3 + 4);
  EXPECT_DOUBLE_EQ(causal_pairs(2, 3, 0), 4 + 5);
  EXPECT_DOUBLE_EQ(causal_pairs(4, 0, 2), 1 + 2 + 2 + 2);
  EXPECT_DOUBLE_EQ(causal_pairs(3, 1, 2), 2 + 2 + 2);
  EXPECT_DOUBLE_EQ(causal_pairs(3, 9, 2), 2 + 2 + 2);
}

}  // namespace
}  // namespace engine
