#include "engine/model/model_ops.h"

#include <gtest/gtest.h>

#include "engine/kernels/attention.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/moe.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

// Arithmetic of the matrix products and attention of a step.
double useful_flops(const ModelSpec& model, const Parallelism& parallel, const BatchShape& batch) {
  const ModelShard shard = shard_of(model, parallel, {});
  OpList ops;
  token_ops(shard, batch, ops);
  attention_ops(shard, batch, ops);
  double flops = 0;
  for (const PlannedOp& planned : ops) {
    if (const auto* gemm = std::get_if<Gemm>(&planned.op)) {
      flops += planned.calls * gemm_time(*gemm, toys::gpu()).flops.value;
    } else if (const auto* moe = std::get_if<Moe>(&planned.op)) {
      flops += planned.calls * moe_time(*moe, toys::gpu()).flops.value;
    } else if (const auto* prefill = std::get_if<AttentionPrefill>(&planned.op)) {
      flops += planned.calls * attention_prefill_time(*prefill, toys::gpu()).flops.value;
    }
  }
  return flops;
}

BatchShape prompts(std::int64_t sequences, std::int64_t tokens) {
  BatchShape batch;
  add_prefill(batch, sequences, tokens, 0, 0);
  batch.sampled = sequences * tokens;  // every token through the output projection
  return batch;
}

TEST(ModelOps, AForwardPassIsTwoOperationsAParameterAndToken) {
  const ModelSpec model = toys::model();
  const ParameterCounts counts = parameter_counts(model);
  const double matrices = counts.attention + counts.dense_mlp + counts.output;
  const double attention = 10.0 * 4 * 32 * 128 * causal_pairs(512, 0, 0);
  EXPECT_DOUBLE_EQ(useful_flops(model, {}, prompts(1, 512)), 2 * matrices * 512 + attention);
}

TEST(ModelOps, AMixtureComputesItsActiveParameters) {
  const ModelSpec model = toys::mixture();
  const ParameterCounts counts = parameter_counts(model);
  const double active =
      counts.attention + counts.dense_mlp + counts.output + counts.experts * 2 / 16;
  const double attention = 10.0 * 4 * 32 * 128 * causal_pairs(512, 0, 0);
  EXPECT_NEAR(useful_flops(model, {}, prompts(1, 512)) / (2 * active * 512 + attention), 1, 1e-12);
}

TEST(ModelOps, TensorParallelSplitsTheArithmetic) {
  const double whole = useful_flops(toys::model(), {}, prompts(2, 256));
  EXPECT_DOUBLE_EQ(useful_flops(toys::model(), {.tp = 4}, prompts(2, 256)), whole / 4);
}

TEST(ModelOps, OneDeviceHasNoCollectives) {
  for (const ModelSpec& model : {toys::model(), toys::mixture(), toys::latent()}) {
    OpList ops;
    token_ops(shard_of(model, {}, {}), prompts(1, 64), ops);
    for (const PlannedOp& planned : ops)
      EXPECT_FALSE(std::holds_alternative<Collective>(planned.op));
  }
}

TEST(ModelOps, TensorParallelReducesTwiceALayer) {
  OpList ops;
  token_ops(shard_of(toys::model(), {.tp = 2}, {}), prompts(1, 64), ops);
  double reduces = 0;
  for (const PlannedOp& planned : ops) {
    if (planned.family != Family::all_reduce) continue;
    reduces += planned.calls;
    EXPECT_DOUBLE_EQ(std::get<Collective>(planned.op).bytes, 64.0 * 4096 * 2);
  }
  EXPECT_EQ(reduces, 20);
}

TEST(ModelOps, SortingTheVocabularyIsMoreWorkThanOnePass) {
  const ModelSpec model = toys::model();
  ModelShard shard = shard_of(model, {}, {});
  BatchShape batch;
  add_decode(batch, 64, 1000, 0);
  batch.sampled = 64;
  const auto bytes = [&] {
    OpList ops;
    token_ops(shard, batch, ops);
    double sum = 0;
    for (const PlannedOp& op : ops) {
      if (op.name != OpName::sampling) continue;
      const Elementwise& pass = std::get<Elementwise>(op.op);
      sum += op.calls * (pass.cold_bytes + pass.resident_bytes);
    }
    return sum;
  };
  const double logits = 64.0 * double(model.vocabulary);
  EXPECT_DOUBLE_EQ(bytes(), 2 * logits);
  shard.sampling = Sampling::sorted;
  EXPECT_DOUBLE_EQ(bytes(), (2 + 24 * 21) * logits);
}

TEST(ModelOps, NarrowExpertsLeaveAttentionIn16Bits) {
  const Quantization quant{
      .weights = Dtype::fp8, .activations = Dtype::fp8, .scope = QuantScope::experts};
  OpList ops;
  const ModelSpec model = toys::mixture();
  token_ops(shard_of(model, {}, quant), prompts(1, 64), ops);
  for (const PlannedOp& op : ops) {
    if (const auto* gemm = std::get_if<Gemm>(&op.op)) {
      EXPECT_EQ(gemm->weights, Dtype::bf16);
    } else if (const auto* moe = std::get_if<Moe>(&op.op)) {
      EXPECT_EQ(moe->weights, Dtype::fp8);
    }
    EXPECT_NE(op.family, Family::quantize);
  }
}

// Formats that are wide already stay what they are, whatever is asked to be narrow.
TEST(ModelOps, NothingWideChangesItsFormat) {
  for (const QuantScope scope : {QuantScope::experts, QuantScope::mlps}) {
    Quantization quant{.weights = Dtype::fp16, .activations = Dtype::fp16, .scope = scope};
    ModelShard shard = shard_of(toys::mixture(), {}, quant);
    EXPECT_EQ(shard.mixers, shard.quant);
    EXPECT_EQ(shard.dense, shard.quant);
    // Narrow weights beside wide inputs are as wide as these where they are spared.
    quant.weights = Dtype::int4;
    shard = shard_of(toys::mixture(), {}, quant);
    EXPECT_EQ(shard.mixers.weights, Dtype::fp16);
    EXPECT_EQ(shard.mixers.activations, Dtype::fp16);
  }
}

// What mixes tokens has 16 bits, with nothing to cast for it; every other matrix is narrow, but routers and logits.
TEST(ModelOps, NarrowMlpsLeaveMixersIn16Bits) {
  const Quantization quant{.weights = Dtype::fp8,
                           .activations = Dtype::fp8,
                           .kv = Dtype::fp8,
                           .scope = QuantScope::mlps};
  for (ModelSpec model : {toys::model(), toys::mixture()}) {
    model.moe.shared_intermediate = model.is_moe() ? 512 : 0;
    OpList ops;
    const ModelShard shard = shard_of(model, {}, quant);
    token_ops(shard, prompts(1, 64), ops);
    attention_ops(shard, prompts(1, 64), ops);
    double casts = 0;
    for (const PlannedOp& op : ops) {
      if (const auto* gemm = std::get_if<Gemm>(&op.op)) {
        const bool mlp = op.name == OpName::gate_up || op.name == OpName::down ||
                         op.name == OpName::shared_gate_up || op.name == OpName::shared_down;
        EXPECT_EQ(gemm->weights, mlp ? Dtype::fp8 : Dtype::bf16) << name_of(op.name);
      } else if (const auto* moe = std::get_if<Moe>(&op.op)) {
        EXPECT_EQ(moe->weights, Dtype::fp8);
      } else if (const auto* attention = std::get_if<AttentionPrefill>(&op.op)) {
        EXPECT_EQ(attention->activations, Dtype::bf16);
        EXPECT_EQ(attention->kv, Dtype::fp8);
      }
      EXPECT_NE(op.name, OpName::quantize_attention);
      if (op.name == OpName::quantize_input) casts += op.calls;
    }
    EXPECT_EQ(casts, double(model.layers));
  }
}

TEST(ModelOps, FewTokensTouchFewExperts) {
  const auto touched = [](std::int64_t tokens) {
    OpList ops;
    token_ops(shard_of(toys::mixture(), {}, {}), prompts(1, tokens), ops);
    for (const PlannedOp& planned : ops) {
      if (const auto* moe = std::get_if<Moe>(&planned.op)) return experts_touched(*moe);
    }
    return 0.0;
  };
  EXPECT_NEAR(touched(1), 2, 1e-9);  // top-2 of 16
  EXPECT_NEAR(touched(2), 16 * (1 - 0.875 * 0.875), 1e-9);
  EXPECT_NEAR(touched(1000), 16, 1e-9);
}

TEST(ModelOps, AWindowModelSplitsItsLayers) {
  ModelSpec model = toys::model();
  model.window = 512;
  model.full_attention_every = 5;
  BatchShape batch;
  add_decode(batch, 1, 2048, model.window);
  OpList ops;
  attention_ops(shard_of(model, {}, {}), batch, ops);
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops.begin()[0].calls, 2);
  EXPECT_EQ(std::get<AttentionDecode>(ops.begin()[0].op).kv_tokens, 2048);
  EXPECT_EQ(ops.begin()[1].calls, 8);
  EXPECT_EQ(std::get<AttentionDecode>(ops.begin()[1].op).kv_tokens, 512);
}

TEST(ShardProblem, SaysWhatDoesNotDivide) {
  EXPECT_EQ(shard_problem(toys::model(), {.tp = 3}),
            "model.heads 32 cannot be split 3 ways (parallel.tp)");
  EXPECT_EQ(shard_problem(toys::model(), {.pp = 11}), "parallel.pp 11 exceeds model.layers 10");
  EXPECT_EQ(shard_problem(toys::model(), {.ep = 2}), "parallel.ep > 1 needs a model with experts");
  EXPECT_EQ(shard_problem(toys::mixture(), {.tp = 2, .dp = 3, .ep = 4}),
            "parallel.dp 3 cannot be split 2 ways (parallel.ep / parallel.tp)");
  EXPECT_EQ(shard_problem(toys::model(), {.tp = 16}), std::nullopt);
}

TEST(ShardProblem, SaysHowManyRedundantExpertsThereMayBe) {
  const auto problem = [](std::int64_t devices, std::int64_t redundant) {
    return shard_problem(toys::mixture(),
                         {.dp = devices, .ep = devices, .redundant_experts = redundant});
  };
  EXPECT_EQ(problem(6, Parallelism{}.redundant_experts), std::nullopt);  // as many as it takes
  EXPECT_EQ(problem(8, 0), std::nullopt);
  EXPECT_EQ(problem(6, 0),
            "model.moe.experts 16 and parallel.redundant_experts 0 cannot be split 6 ways "
            "(parallel.ep); 2 redundant experts can");
  EXPECT_EQ(problem(6, 2), std::nullopt);
  EXPECT_EQ(problem(6, 8), std::nullopt);
  EXPECT_EQ(problem(6, 1),
            "model.moe.experts 16 and parallel.redundant_experts 1 cannot be split 6 ways "
            "(parallel.ep); 2 redundant experts can");
  EXPECT_EQ(problem(6, 5),
            "model.moe.experts 16 and parallel.redundant_experts 5 cannot be split 6 ways "
            "(parallel.ep); 2 or 8 redundant experts can");
  EXPECT_EQ(problem(1, 4), "parallel.redundant_experts needs parallel.ep > 1");
  EXPECT_EQ(problem(2, 32), "parallel.redundant_experts 32 puts an expert twice on one device");
  EXPECT_EQ(shard_problem(toys::model(), {.redundant_experts = 1}),
            "parallel.redundant_experts needs a model with experts");
}

TEST(ShardProblem, SaysWhatIsWrongWithGroupsOfExperts) {
  const auto problem = [](std::int64_t groups, std::int64_t top_groups) {
    ModelSpec model = toys::mixture();  // 16 experts, two a token
    model.moe.groups = groups;
    model.moe.top_groups = top_groups;
    return shard_problem(model, {});
  };
  EXPECT_EQ(problem(8, 2), std::nullopt);
  EXPECT_EQ(problem(5, 2), "model.moe.experts 16 cannot be split 5 ways (model.moe.groups)");
  EXPECT_EQ(problem(4, 5), "model.moe.top_groups 5 exceeds model.moe.groups 4");
  EXPECT_EQ(problem(16, 1), "model.moe.top_k 2 exceeds the experts of model.moe.top_groups 1");
}

// Bits of a weight with its share of a scale, by the formats' own definitions.
TEST(StoredBytes, FormatsHaveTheirOwnScales) {
  const auto bits = [](Dtype format, std::int64_t group) {
    return 8 * stored_bytes(1, format, group);
  };
  EXPECT_DOUBLE_EQ(bits(Dtype::bf16, 128), 16);
  EXPECT_DOUBLE_EQ(bits(Dtype::int4, 128), 4.125);                 // AWQ, GPTQ
  EXPECT_DOUBLE_EQ(bits(Dtype::fp4, 16), 4.5);                     // NVFP4
  EXPECT_DOUBLE_EQ(bits(Dtype::fp4, 32), 4.25);                    // MXFP4
  EXPECT_DOUBLE_EQ(bits(Dtype::fp8, 32), 8.25);                    // MXFP8
  EXPECT_DOUBLE_EQ(bits(Dtype::fp8, 128), 8 + 32 / (128. * 128));  // DeepSeek's blocks
}

}  // namespace
}  // namespace engine
