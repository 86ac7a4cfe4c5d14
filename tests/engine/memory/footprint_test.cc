#include "engine/memory/footprint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/toys.h"

namespace engine {
namespace {

Footprint footprint(const ModelSpec& model, Parallelism parallel, Quantization quant = {}) {
  return footprint_of(
      shard_of(model, parallel, quant), toys::gpu(),
      {.utilization = 0.9, .reserved = Bytes{1e9}, .step_tokens = 1, .step_sampled = 1});
}

TEST(Footprint, OneDeviceHoldsEveryParameterInTwoBytes) {
  const ModelSpec model = toys::model();
  EXPECT_DOUBLE_EQ(footprint(model, {}).weights.value, 2 * parameter_counts(model).total());
}

TEST(Footprint, AShareOfTheRestIsTakenOnceTheModelIsIn) {
  MemoryBudget budget{.utilization = 0.5, .of = MemoryShare::rest, .reserved = Bytes{1e9}};
  const ModelSpec spec = toys::model();
  const ModelShard shard = shard_of(spec, {}, {});
  const Footprint footprint = footprint_of(shard, toys::gpu(), budget);
  const Bytes model = footprint.weights + footprint.activations + footprint.reserved;
  EXPECT_DOUBLE_EQ(footprint.left().value, 0.5 * (100e9 - model.value));
  // Of a model that does not fit, nothing is left, and by how much is as it was.
  budget.reserved = Bytes{200e9};
  EXPECT_LT(footprint_of(shard, toys::gpu(), budget).left().value, -100e9);
}

// Buffers have what is outside the share, and count against it only where they overflow that.
TEST(Footprint, AShareForWeightsAndKvLeavesBuffersOutside) {
  MemoryBudget budget{.utilization = 0.8, .of = MemoryShare::model_and_kv, .step_tokens = 1000};
  const ModelSpec spec = toys::model();
  const ModelShard shard = shard_of(spec, {}, {});
  const Footprint few = footprint_of(shard, toys::gpu(), budget);
  EXPECT_DOUBLE_EQ(few.left().value, 80e9 - few.weights.value);
  budget.reserved = Bytes{30e9};
  const Footprint many = footprint_of(shard, toys::gpu(), budget);
  EXPECT_DOUBLE_EQ(many.left().value, 100e9 - 30e9 - many.activations.value - many.weights.value);
}

TEST(Footprint, TensorParallelSplitsTheWeights) {
  const ModelSpec model = toys::model();
  const double norms = 2 * parameter_counts(model).norms;
  const double whole = footprint(model, {}).weights.value - norms;
  EXPECT_DOUBLE_EQ(footprint(model, {.tp = 8}).weights.value - norms, whole / 8);
}

TEST(Footprint, KvHeadsAreRepeatedWhenThereAreTooFew) {
  ModelSpec model = toys::model();
  model.kv_heads = 1;
  const double one = kv_bytes(shard_of(model, {}, {}), 1).value;
  EXPECT_DOUBLE_EQ(kv_bytes(shard_of(model, {.tp = 4}, {}), 1).value, one);
}

TEST(Footprint, KvOfATokenIsTwoVectorsALayer) {
  EXPECT_DOUBLE_EQ(kv_bytes(shard_of(toys::model(), {}, {}), 1).value, 2.0 * 10 * 8 * 128 * 2);
  EXPECT_DOUBLE_EQ(kv_bytes(shard_of(toys::model(), {}, {.kv = Dtype::fp8}), 1).value,
                   2.0 * 10 * 8 * 128);
  EXPECT_DOUBLE_EQ(kv_bytes(shard_of(toys::model(), {.tp = 8}, {}), 1).value, 2.0 * 10 * 128 * 2);
}

TEST(Footprint, ALatentIsKeptWholeOnEveryDevice) {
  const double one = kv_bytes(shard_of(toys::latent(), {}, {}), 1).value;
  EXPECT_DOUBLE_EQ(one, 10.0 * (512 + 64) * 2);
  EXPECT_DOUBLE_EQ(kv_bytes(shard_of(toys::latent(), {.tp = 8}, {}), 1).value, one);
}

// So are the weights that make latents of queries and of keys, and routers, which stay in 16 bits whatever the format.
TEST(Footprint, WhatMakesLatentsIsWholeOnEveryDevice) {
  ModelSpec model = toys::latent();
  for (const std::int64_t q_rank : {0, 1536}) {
    model.mla.q_rank = q_rank;
    const ParameterCounts counts = parameter_counts(model);
    const double made = 10.0 * 4096 * double(q_rank + 512 + 64);
    for (const std::int64_t tp : {2, 8}) {
      const double split = (counts.total() - counts.norms - made) / double(tp);
      EXPECT_NEAR(footprint(model, {.tp = tp}).weights.value, 2 * (split + counts.norms + made), 1);
    }
  }
}
TEST(Footprint, RoutersAreWholeOnEveryDevice) {
  ModelSpec model = toys::mixture();
  model.moe.shared_gate = true;
  const ParameterCounts counts = parameter_counts(model);
  const double routers = double(layer_counts(model).mixture) * 4096 * (16 + 1);
  const double split = (counts.total() - counts.norms - routers) / 8;
  EXPECT_NEAR(footprint(model, {.tp = 8}).weights.value, 2 * (split + counts.norms + routers), 1);
  const Quantization narrow{.weights = Dtype::fp8, .activations = Dtype::fp8, .group = 1 << 30};
  model.moe.experts *= 2;
  const double one = footprint(toys::mixture(), {}, narrow).weights.value;
  const double two = footprint(model, {}, narrow).weights.value;
  EXPECT_NEAR(two - one, parameter_counts(model).experts / 2 + routers * 2, 1e3);
}

TEST(Footprint, WindowLayersStopGrowing) {
  ModelSpec model = toys::model();
  model.window = 1000;
  model.full_attention_every = 2;
  const ModelShard shard = shard_of(model, {}, {});
  const double token = 2.0 * 8 * 128 * 2;
  EXPECT_DOUBLE_EQ(kv_bytes(shard, 500).value, 10 * 500 * token);
  EXPECT_DOUBLE_EQ(kv_bytes(shard, 4000).value, (5 * 4000 + 5 * 1000) * token);
}

TEST(Footprint, ExpertParallelSpreadsTheExperts) {
  const ModelSpec model = toys::mixture();
  const double experts = 2 * parameter_counts(model).experts;
  const double whole = footprint(model, {.dp = 8}).weights.value;
  EXPECT_DOUBLE_EQ(footprint(model, {.dp = 8, .ep = 8}).weights.value, whole - experts * 7 / 8);
}

TEST(Footprint, OnlyExpertsMayBeNarrow) {
  const ModelSpec model = toys::mixture();
  const double experts = parameter_counts(model).experts;
  const double wide = footprint(model, {}).weights.value;
  const Quantization narrow{.weights = Dtype::fp8,
                            .activations = Dtype::fp8,
                            .group = 1'000'000'000,
                            .scope = QuantScope::experts};
  // Two bytes become one, and a scale a group, which is next to nothing here.
  EXPECT_NEAR(footprint(model, {}, narrow).weights.value, wide - experts, 100);
}

TEST(Footprint, MlpsMayBeNarrowBesideAttention) {
  for (const ModelSpec& model : {toys::model(), toys::mixture()}) {
    const ParameterCounts counts = parameter_counts(model);
    const double wide = footprint(model, {}).weights.value;
    const Quantization narrow{.weights = Dtype::fp8,
                              .activations = Dtype::fp8,
                              .group = 1'000'000'000,
                              .scope = QuantScope::mlps};
    const double routers =
        model.is_moe() ? double(layer_counts(model).mixture) * shared_parameters(model, 0) : 0;
    EXPECT_NEAR(footprint(model, {}, narrow).weights.value,
                wide - counts.experts - (counts.dense_mlp - routers), 200);
  }
}

// Marlin's kernels want whole tiles of 256 by 128: what fills them up lies in memory, too, on each device for itself.
TEST(Footprint, WeightsInWholeTilesHoldTheirZeros) {
  ModelSpec model = toys::mixture();
  model.hidden = 2880;
  const Quantization four{.weights = Dtype::fp4, .activations = Dtype::bf16, .group = 32};
  const auto weights = [&](Quantization quant, std::int64_t tp, FourBitExperts kernels) {
    ModelShard shard = shard_of(model, {.tp = tp}, quant);
    shard.four_bit_experts = kernels;
    return footprint_of(shard, toys::gpu(), {}).weights.value;
  };
  for (const std::int64_t tp : {1, 2, 4}) {
    for (const std::int64_t width : {1024, 1440, 2880}) {
      model.moe.intermediate = width;
      const double whole = 3072.0 * std::ceil(double(width) / double(tp) / 128) * 128;
      const double own = 2880.0 * double(width) / double(tp);
      const double experts =
          stored_bytes(parameter_counts(model).experts / double(tp), Dtype::fp4, 32);
      const double more =
          weights(four, tp, FourBitExperts::marlin) - weights(four, tp, FourBitExperts::own);
      EXPECT_NEAR(more, experts * (whole / own - 1), 1e-6 * experts) << tp << " " << width;
      Quantization wider = four;
      wider.activations = Dtype::fp8;
      EXPECT_EQ(weights(wider, tp, FourBitExperts::marlin),
                weights(wider, tp, FourBitExperts::own));
    }
  }
}

TEST(Footprint, TheSamplerHoldsEveryLogitOfItsLargestBatch) {
  const ModelSpec model = toys::model();
  const auto activations = [&model](std::int64_t sampled, double per_logit) {
    return footprint_of(
               shard_of(model, {}, {}), toys::gpu(),
               {.step_tokens = 100, .step_sampled = sampled, .per_logit = Bytes{per_logit}})
        .activations.value;
  };
  const double logits = 1000.0 * double(model.vocabulary);
  EXPECT_DOUBLE_EQ(activations(1000, 38) - activations(1000, 4), 34 * logits);
  // The output of the last layer is there at the same time: input and residual, two bytes each.
  EXPECT_DOUBLE_EQ(activations(1000, 4), 4 * logits + 100.0 * double(model.hidden) * 4);
}

TEST(Footprint, ASecondDeviceNeedsBuffersToTalkTo) {
  const double alone = footprint(toys::model(), {}).reserved.value;
  EXPECT_DOUBLE_EQ(footprint(toys::model(), {.tp = 2}).reserved.value, alone + 0.45e9);
  EXPECT_DOUBLE_EQ(footprint(toys::model(), {.dp = 2}).reserved.value, alone);
}

TEST(Footprint, StagesShareTheLayers) {
  const double whole = kv_bytes(shard_of(toys::model(), {}, {}), 100).value;
  EXPECT_DOUBLE_EQ(kv_bytes(shard_of(toys::model(), {.pp = 5}, {}), 100).value, whole / 5);
}

}  // namespace
}  // namespace engine
