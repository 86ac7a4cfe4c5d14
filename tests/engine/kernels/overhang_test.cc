#include "engine/kernels/overhang.h"

#include <gtest/gtest.h>

#include "engine/kernels/attention.h"
#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// 100 multiprocessors at 1 GHz: a key of 256 numbers takes one of them 45 ns.
AttentionDecode decodes(std::int64_t sequences, double overhang) {
  return {.sequences = sequences,
          .kv_tokens = double(sequences) * 1000,
          .overhang = overhang,
          .heads = 32,
          .kv_heads = 8};
}

TEST(Overhang, TheLongestRunsOnAlone) {
  // 20 sequences of 8 heads are 160 blocks, four fifths of two a multiprocessor.
  EXPECT_NEAR(overhang_time(decodes(20, 2000), toys::gpu()).value, 2000 * 45e-9, 1e-15);
}

TEST(Overhang, FewSequencesAreSplitFinely) {
  EXPECT_EQ(overhang_time(decodes(19, 2000), toys::gpu()).value, 0);
}

TEST(Overhang, AmongManyItBeginsBeforeTheOthersEnd) {
  // Half of a head's 512 bytes a key, of 400 sequences at 1 TB/s: 102.4 ns a key.
  EXPECT_NEAR(overhang_time(decodes(400, 2000), toys::gpu()).value, 2000 * 45e-9 * 45 / 102.4,
              1e-15);
}

TEST(Overhang, IsAddedToTheTimeOfEqualContexts) {
  const AttentionDecode op = decodes(64, 3000);
  const auto time = [&](double overhang) {
    AttentionDecode uneven = op;
    uneven.overhang = overhang;
    return attention_decode_time(uneven, toys::gpu(), Family::attn_decode, &toys::transfer()).time;
  };
  EXPECT_DOUBLE_EQ(time(3000).value, time(0).value + overhang_time(op, toys::gpu()).value);
  EXPECT_GT(time(3001), time(3000));
}

TEST(Overhang, BesidePromptsNothingIsSplit) {
  AttentionPrefill op{.sequences = 2,
                      .tokens = 2,
                      .pairs = 2000,
                      .kv_tokens = 2000,
                      .heads = 32,
                      .kv_heads = 8,
                      .key_dim = 64,
                      .value_dim = 64,
                      .decodes = true,
                      .overhang = 100};
  EXPECT_NEAR(overhang_time(op, toys::gpu()).value, 100 * 45e-9 / 2, 1e-15);
}

}  // namespace
}  // namespace engine
