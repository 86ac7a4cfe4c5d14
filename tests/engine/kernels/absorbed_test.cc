#include "engine/kernels/absorbed.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "tests/support/calibrations.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

constexpr Family kAbsorbedFamilies[] = {Family::mla_gen_pre, Family::mla_gen_post};

Gemm absorbed_product(std::int64_t tokens, Dtype dtype) {
  Gemm op{.m = tokens, .n = 512, .k = 128, .batch = 128};
  op.weights = op.activations = dtype;
  return op;
}

Device of_generation(const char* architecture) {
  Device device = toys::gpu();
  device.architecture = architecture;
  return device;
}

double absorbed_seconds(std::int64_t tokens, Dtype dtype, Family family, const char* architecture,
                        const Calibration& calibration) {
  return absorbed_time(absorbed_product(tokens, dtype), family, of_generation(architecture),
                       &calibration)
      .total()
      .value;
}

// Engines expand narrow weights where they have no kernel for them: a kernel of another generation, however slow, is not theirs.
TEST(Absorbed, NarrowWeightsAreExpandedWhereTheGenerationsOwnKernelsWereNotMeasured) {
  for (const char* generation : {"Ampere", "Ada", "Blackwell", "CDNA 3", "CDNA 4", "unknown"}) {
    for (const Family family : kAbsorbedFamilies) {
      for (const std::int64_t tokens : {1, 16, 64, 256, 4096}) {
        EXPECT_EQ(absorbed_seconds(tokens, Dtype::fp8, family, generation, toys::transfer()),
                  absorbed_seconds(tokens, Dtype::bf16, family, generation, toys::transfer()))
            << generation << " " << tokens;
      }
    }
  }
}

TEST(Absorbed, AGenerationsOwnNarrowKernelsSpeakForIt) {
  for (const Family family : kAbsorbedFamilies) {
    const double narrow = absorbed_seconds(64, Dtype::fp8, family, "Hopper", toys::transfer());
    const double wide = absorbed_seconds(64, Dtype::bf16, family, "Hopper", toys::transfer());
    EXPECT_GT(narrow, 1.3 * wide);  // they quantise their input, and lag behind those in 16 bits
  }
}

TEST(Absorbed, ASweepOfTheDeviceComesFirst) {
  Calibration swept = toys::transfer();
  auto& own = swept.mla_gen_pre_fp8.edit(ParameterSet::own);
  own.launch = 1;
  own.fit = {.floor = 50};
  const double narrow = absorbed_seconds(1, Dtype::fp8, Family::mla_gen_pre, "Blackwell", swept);
  EXPECT_GT(narrow, 50e-6);
}

TEST(Absorbed, NarrowSetsAloneAreBetterThanNone) {
  Calibration narrow_only;
  auto& pooled = narrow_only.mla_gen_pre_fp8.edit(ParameterSet::pooled);
  pooled.launch = 1;
  pooled.fit = {.floor = 20};
  EXPECT_GT(absorbed_seconds(1, Dtype::fp8, Family::mla_gen_pre, "Ada", narrow_only), 20e-6);
}

}  // namespace
}  // namespace engine
