#include "engine/training/weight_passes.h"

#include <algorithm>

#include "engine/model/passes.h"
#include "engine/training/state_bytes.h"
#include "engine/training/train_memory.h"

namespace engine {
namespace {

// Weights in 16 bits become narrow ones, and narrow ones along the other side: they are read for their maximum, read and written
// to be cast, and turned round, which takes half as long again as a plain pass.
constexpr double kNarrowBytes = 2 + (2 + 1), kTurnBytes = 1.5 * (1 + 1);
constexpr double kCastBytes = kNarrowBytes + kTurnBytes;

double expert_weights(const Moe& experts) {
  return double(experts.local_experts) * (experts.gated ? 3 : 2) * double(experts.hidden) *
         double(experts.intermediate);
}

// Products that add to what is there take longer than those that write 16 bits, by this part of a plain pass over what they read
// and write beyond that: what results in 32 bits take longer than in 16 (median of 21 shapes on an H200,
// specs/calibration/h200-sxm/train_kernels.csv: weights_fp32).
constexpr double kFusedSum = 0.72;

double passes_of_a_step(const TrainSettings& train, std::int64_t replicas) {
  return double(train.global_batch / (train.micro_batch * replicas));
}

// Stages on devices of another kind are not known here; whoever has a part of the model is one of two at least.
std::int64_t stages_around(const Parallelism& parallel, const LayerChunk& chunk) {
  const bool whole = chunk.span.first && chunk.span.last;
  return whole ? 1 : std::max<std::int64_t>(2, parallel.pp);
}

// Bytes that products move for each gradient they add to what is there, as those of a plain pass. A single micro-batch has
// nothing to add to, replicas that share gradients out add up their own parts, and what leaves for the host is added up there.
double bytes_of_a_fused_sum(const Parallelism& parallel, const LayerChunk& chunk,
                            const TrainSettings& train) {
  if (scatters_each_pass(train, stages_around(parallel, chunk))) return 0;
  if (passes_of_a_step(train, parallel.dp) <= 1) return 0;
  if (train.offload_optimizer && parallel.dp == 1) return 0;
  return kFusedSum * (2 * bytes_of(train.gradients) - kActivationBytes);
}

double weights_made(const PlannedOp& planned) {
  if (const auto* experts = std::get_if<Moe>(&planned.op)) return expert_weights(*experts);
  const auto* product = std::get_if<Gemm>(&planned.op);
  return product == nullptr ? 0 : double(product->m) * double(product->n * product->batch);
}

bool is_narrow(Dtype format) { return bytes_of(format) < kActivationBytes; }

struct Matrix {
  double rows = 0, weights = 0;
};
Matrix narrow_matrix(const PlannedOp& planned) {
  if (const auto* experts = std::get_if<Moe>(&planned.op)) {
    if (!is_narrow(experts->activations)) return {};
    const double weights = expert_weights(*experts);
    return {weights / double(experts->hidden), weights};
  }
  const auto* product = std::get_if<Gemm>(&planned.op);
  if (product == nullptr || !is_narrow(product->activations)) return {};
  return {double(product->n), double(product->n) * double(product->k) * double(product->batch)};
}

// Passes over the weights of narrow products: `bytes` for each, so many `times` a pass of the product.
struct WeightPass {
  double bytes, times = 1;
};
void add_weight_passes(const OpList& products, WeightPass pass, OpList& ops) {
  OpList casts;
  for (const PlannedOp& op : products) {
    const Matrix matrix = narrow_matrix(op);
    if (matrix.weights <= 0) continue;
    casts.add(OpName::cast_transpose, Family::residual, op.calls * pass.times,
              Elementwise{.rows = matrix.rows,
                          .resident_bytes = 0,
                          .cold_bytes = pass.bytes * matrix.weights,
                          .flops = 0});
  }
  for (const PlannedOp& op : casts) ops.add(op);
}

// Frozen weights are narrow, and stay; so do copies that outlast a micro-batch.
bool copies_stay(const Parallelism& parallel, const TrainSettings& train) {
  return train.has_adapters() || narrow_copies(parallel, train) == NarrowCopies::a_step;
}

}  // namespace

NarrowCopies narrow_copies(const Parallelism& parallel, const TrainSettings& train) {
  const bool gathers = train.zero == 3 && sharers_of(parallel, train).dense > 1;
  if (gathers) return train.reshard ? NarrowCopies::a_pass : NarrowCopies::a_micro_batch;
  return passes_of_a_step(train, parallel.dp) > 1 ? NarrowCopies::a_step
                                                  : NarrowCopies::a_micro_batch;
}

double copy_bytes(const ChunkWeights& weights, const ModelShard& shard,
                  const TrainSettings& train) {
  if (!copies_stay(shard.parallel, train)) return 0;
  const double copies = (train.has_adapters() ? 0 : 1) + (train.transpose_cache ? 1 : 0);
  const auto bytes = [&](Dtype format) {
    return is_narrow(format) ? copies * bytes_of(format) : 0;
  };
  return bytes(shard.dense.activations) * (weights.dense - weights.ends()) +
         bytes(shard.quant.activations) * weights.experts;
}

void cast_weights(const TrainSettings& train, const Parallelism& parallel, const OpList& backward,
                  PassOps& ops) {
  if (copies_stay(parallel, train) && !train.transpose_cache) {
    add_weight_passes(backward, {kTurnBytes}, ops.inputs);
  }
  if (train.has_adapters()) return;
  switch (narrow_copies(parallel, train)) {
    case NarrowCopies::a_step:
      return add_weight_passes(ops.forward,
                               {.bytes = train.transpose_cache ? kCastBytes : kNarrowBytes,
                                .times = 1 / passes_of_a_step(train, parallel.dp)},
                               ops.forward);
    case NarrowCopies::a_micro_batch:
      return add_weight_passes(ops.forward, {kCastBytes}, ops.forward);
    case NarrowCopies::a_pass:
      add_weight_passes(ops.forward, {kNarrowBytes}, ops.forward);
      return add_weight_passes(backward, {kCastBytes}, ops.inputs);
  }
}

void add_sums(const ModelShard& shard, const LayerChunk& chunk, const TrainSettings& train,
              OpList& weights) {
  OpList sums;
  const auto add = [&](OpName name, double made, double calls, double bytes) {
    if (made * bytes <= 0) return;
    sums.add(name, Family::residual, calls,
             Elementwise{.rows = 1, .resident_bytes = 0, .cold_bytes = made * bytes, .flops = 0});
  };
  const bool fused = train.fused_gradients;
  const double sum = kActivationBytes + 2 * bytes_of(train.gradients);
  const double of_product = fused ? bytes_of_a_fused_sum(shard.parallel, chunk, train) : sum;
  // Those of embedding and logits, which some chunks have and others do not, go by their own names (CallRows).
  for (const PlannedOp& planned : weights) {
    const bool at_the_end = planned.name == OpName::logits;
    add(at_the_end ? OpName::logits : OpName::gradient_sum, weights_made(planned), planned.calls,
        of_product);
  }
  // Most rows of a table of embeddings have no gradient: it is zeros first.
  const bool embeds = chunk.trained.first && chunk.has_gradients() && !train.has_adapters();
  const double embeddings = double(shard.vocabulary) * double(shard.model->hidden);
  if (!fused && embeds) add(OpName::embedding, embeddings, 1, kActivationBytes + sum);
  for (const PlannedOp& planned : sums) weights.add(planned);
}

}  // namespace engine
