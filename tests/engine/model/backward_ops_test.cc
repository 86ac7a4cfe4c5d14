#include "engine/model/backward_ops.h"

#include <gtest/gtest.h>

#include "engine/kernels/kernel_time.h"
#include "tests/support/toys.h"

namespace engine {
namespace {

BatchShape prompts(std::int64_t sequences, std::int64_t tokens) {
  BatchShape batch;
  add_prefill(batch, sequences, tokens, 0, 0);
  batch.sampled = sequences * tokens;
  return batch;
}

OpList forward_of(const ModelSpec& model, const Parallelism& parallel, const BatchShape& batch) {
  const ModelShard shard = shard_of(model, parallel, {});
  OpList ops;
  token_ops(shard, batch, ops);
  attention_ops(shard, batch, ops);
  return ops;
}

OpList backward_of(const OpList& forward) {
  OpList backward, weights;
  backward_ops(forward, NarrowTurn::apart, backward, weights);
  for (const PlannedOp& op : weights) backward.add(op);
  return backward;
}

template <class Shape>
double flops_of(const OpList& ops) {
  double flops = 0;
  for (const PlannedOp& planned : ops) {
    if (!std::holds_alternative<Shape>(planned.op)) continue;
    flops +=
        planned.calls * kernel_time(planned.family, planned.op, toys::gpu(), nullptr).flops.value;
  }
  return flops;
}

TEST(BackwardOps, ProductsDoTwiceTheirForwardArithmetic) {
  for (const ModelSpec& model : {toys::model(), toys::mixture(), toys::latent()}) {
    for (const std::int64_t tp : {1, 2, 4}) {
      const OpList forward = forward_of(model, {.tp = tp}, prompts(2, 256));
      const OpList backward = backward_of(forward);
      EXPECT_DOUBLE_EQ(flops_of<Gemm>(backward), 2 * flops_of<Gemm>(forward)) << model.name;
      EXPECT_DOUBLE_EQ(flops_of<Moe>(backward), 2 * flops_of<Moe>(forward)) << model.name;
    }
  }
}

TEST(BackwardOps, AttentionDoesFiveProductsForTwo) {
  const OpList forward = forward_of(toys::model(), {}, prompts(2, 256));
  EXPECT_DOUBLE_EQ(flops_of<AttentionPrefill>(backward_of(forward)),
                   2.5 * flops_of<AttentionPrefill>(forward));
}

TEST(BackwardOps, NothingIsNegativeAndEverythingTakesTime) {
  for (const ModelSpec& model : {toys::model(), toys::mixture(), toys::latent()}) {
    for (const PlannedOp& op : backward_of(forward_of(model, {}, prompts(1, 64)))) {
      EXPECT_GT(op.calls, 0);
      const KernelTime time = kernel_time(op.family, op.op, toys::gpu(), nullptr);
      EXPECT_GT(time.time.value, 0) << name_of(op.name);
      EXPECT_GE(time.flops.value, 0) << name_of(op.name);
      EXPECT_GE(time.bytes.value, 0) << name_of(op.name);
    }
  }
}

TEST(BackwardOps, ComeInTheOppositeOrderAndSampleNothing) {
  const OpList forward = forward_of(toys::model(), {.tp = 2}, prompts(1, 64));
  OpList inputs, weights;
  backward_ops(forward, NarrowTurn::apart, inputs, weights);
  EXPECT_EQ(inputs.begin()->name, (forward.end() - 1)->name);
  EXPECT_EQ((inputs.end() - 1)->name, forward.begin()->name);
  for (const PlannedOp& op : inputs) EXPECT_NE(op.name, OpName::sampling);
  for (const PlannedOp& op : weights) EXPECT_NE(op.name, OpName::sampling);
}

// What one rank gathered from all is dealt out to all, and a sum over ranks stays one.
TEST(BackwardOps, CollectivesAreReversed) {
  OpList forward;
  const Collective gather{.pattern = Pattern::all_gather, .bytes = 1e6, .ranks = 4};
  const Collective sum{.pattern = Pattern::all_reduce, .bytes = 1e6, .ranks = 4};
  forward.add(OpName::logits_gather, Family::all_gather, 1, gather);
  forward.add(OpName::mlp_reduce, Family::all_reduce, 3, sum);
  const OpList backward = backward_of(forward);
  ASSERT_EQ(backward.size(), 2u);
  const PlannedOp& first = *backward.begin();
  EXPECT_EQ(first.family, Family::all_reduce);
  EXPECT_EQ(first.calls, 3);
  const PlannedOp& second = *(backward.begin() + 1);
  EXPECT_EQ(second.family, Family::reduce_scatter);
  EXPECT_EQ(std::get<Collective>(second.op).pattern, Pattern::reduce_scatter);
}

}  // namespace
}  // namespace engine
