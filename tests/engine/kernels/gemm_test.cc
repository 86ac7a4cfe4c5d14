#include "engine/kernels/gemm.h"

#include <gtest/gtest.h>

#include "tests/support/toys.h"

namespace engine {
namespace {

TEST(Gemm, LargeProductRunsAtPeak) {
  // 100 x 100 tiles of 128 x 256 are whole waves: 2 m n k FLOP at 1 PFLOP/s.
  const Gemm gemm{.m = 12800, .n = 25600, .k = 4096};
  const KernelTime time = gemm_time(gemm, toys::gpu());
  EXPECT_DOUBLE_EQ(time.compute.value, 2.0 * 12800 * 25600 * 4096 / 1e15);
  EXPECT_EQ(time.bound(), Bound::compute);
}

TEST(Gemm, OneRowReadsTheWeightsOnce) {
  const Gemm gemm{.m = 1, .n = 8192, .k = 8192};
  const KernelTime time = gemm_time(gemm, toys::gpu());
  EXPECT_DOUBLE_EQ(time.memory.value, 2.0 * 8192 * 8192 / 1e12);
  EXPECT_EQ(time.bound(), Bound::memory);
  EXPECT_DOUBLE_EQ(time.launch.value, 1e-6);
}

TEST(Gemm, Int4WeightsMoveAQuarterOfTheBytesAndTheirScales) {
  const Gemm wide{.m = 1, .n = 8192, .k = 8192};
  Gemm narrow = wide;
  narrow.weights = Dtype::int4;
  const double expected = 0.25 + 2.0 / 128 / 2;  // half a byte and a 2-byte scale per 128 weights
  EXPECT_DOUBLE_EQ(gemm_time(narrow, toys::gpu()).memory / gemm_time(wide, toys::gpu()).memory,
                   expected);
}

TEST(Gemm, WeightOnlyFormatsComputeInTheActivationsFormat) {
  EXPECT_EQ(compute_dtype(Dtype::int4, Dtype::bf16), Dtype::bf16);
  EXPECT_EQ(compute_dtype(Dtype::fp8, Dtype::fp8), Dtype::fp8);
  EXPECT_EQ(compute_dtype(Dtype::bf16, Dtype::fp8), Dtype::bf16);
}

TEST(Gemm, ARaggedTileTakesAsLongAsAFullOne) {
  const Gemm full{.m = 128, .n = 25600, .k = 4096};
  Gemm ragged = full;
  ragged.m = 113;
  EXPECT_EQ(gemm_time(ragged, toys::gpu()).compute, gemm_time(full, toys::gpu()).compute);
}

TEST(Gemm, OneColumnBeyondAFullWaveCostsMoreThanAColumn) {
  // 100 tiles of 128 x 256 fill 100 multiprocessors exactly; one more column starts another wave.
  const Gemm wave{.m = 128, .n = 25600, .k = 4096};
  Gemm more = wave;
  more.n = 25601;
  EXPECT_GT(gemm_time(more, toys::gpu()).compute.value,
            1.02 * gemm_time(wave, toys::gpu()).compute.value);
}

TEST(GroupedGemm, OneExpertEqualsOneProduct) {
  const KernelTime one = gemm_time({.m = 64, .n = 4096, .k = 4096}, toys::gpu());
  const KernelTime grouped =
      grouped_gemm_time({.rows = 64, .touched = 1, .n = 4096, .k = 4096}, toys::gpu());
  EXPECT_DOUBLE_EQ(one.total().value, grouped.total().value);
}

TEST(GroupedGemm, EachTouchedExpertIsRead) {
  const KernelTime one =
      grouped_gemm_time({.rows = 8, .touched = 1, .n = 4096, .k = 4096}, toys::gpu());
  const KernelTime eight =
      grouped_gemm_time({.rows = 8, .touched = 8, .n = 4096, .k = 4096}, toys::gpu());
  EXPECT_DOUBLE_EQ(eight.memory.value, 8 * one.memory.value);
}

}  // namespace
}  // namespace engine
