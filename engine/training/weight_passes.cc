#include "engine/training/weight_passes.h"

#include "engine/model/passes.h"
#include "engine/training/state_bytes.h"

namespace engine {
namespace {

// Weights in 16 bits become narrow ones, and narrow ones along the other side, once a step: they are read for their
// maximum, read and written to be cast, and turned round, which takes half as long again as a plain pass.
constexpr double kCastBytes = 2 + (2 + 1) + 1.5 * (1 + 1);

// Products that add to what is there take longer than those that write 16 bits, by this part of a plain pass over what they read
// and write beyond that: what results in 32 bits take longer than in 16 (median of 21 shapes on an H200,
// specs/calibration/h200-sxm/train_kernels.csv: weights_fp32).
constexpr double kFusedSum = 0.72;

double passes_of_a_step(const TrainSettings& train, std::int64_t replicas) {
  return double(train.global_batch / (train.micro_batch * replicas));
}

// Bytes that products move for each gradient they add to what is there, as those of a plain pass. A single micro-batch has
// nothing to add to, and replicas that share gradients out add up their own parts.
double bytes_of_a_fused_sum(const TrainSettings& train, std::int64_t replicas) {
  if (train.zero >= 2 || passes_of_a_step(train, replicas) <= 1) return 0;
  return kFusedSum * (2 * bytes_of(train.gradients) - kActivationBytes);
}

double weights_made(const PlannedOp& planned) {
  if (const auto* experts = std::get_if<Moe>(&planned.op)) {
    return double(experts->local_experts) * (experts->gated ? 3 : 2) * double(experts->hidden) *
           double(experts->intermediate);
  }
  const auto* product = std::get_if<Gemm>(&planned.op);
  return product == nullptr ? 0 : double(product->m) * double(product->n * product->batch);
}

}  // namespace

void cast_weights(const TrainSettings& train, std::int64_t replicas, OpList& forward) {
  if (train.has_adapters()) return;
  const double passes = passes_of_a_step(train, replicas);
  OpList casts;
  for (const PlannedOp& op : forward) {
    const auto* product = std::get_if<Gemm>(&op.op);
    if (product == nullptr || bytes_of(product->activations) >= kActivationBytes) continue;
    const double weights = double(product->n) * double(product->k) * double(product->batch);
    casts.add(OpName::cast_transpose, Family::residual, op.calls / passes,
              Elementwise{.rows = double(product->n),
                          .resident_bytes = 0,
                          .cold_bytes = kCastBytes * weights,
                          .flops = 0});
  }
  for (const PlannedOp& op : casts) forward.add(op);
}

void add_sums(const TrainSettings& train, std::int64_t replicas, double embeddings,
              OpList& weights) {
  OpList sums;
  const auto add = [&](OpName name, double made, double calls, double bytes) {
    if (made * bytes <= 0) return;
    sums.add(name, Family::residual, calls,
             Elementwise{.rows = 1, .resident_bytes = 0, .cold_bytes = made * bytes, .flops = 0});
  };
  const bool fused = train.fused_gradients;
  const double sum = kActivationBytes + 2 * bytes_of(train.gradients);
  const double of_product = fused ? bytes_of_a_fused_sum(train, replicas) : sum;
  // Those of embedding and logits, which some chunks have and others do not, go by their own names (CallRows).
  for (const PlannedOp& planned : weights) {
    const bool at_the_end = planned.name == OpName::logits;
    add(at_the_end ? OpName::logits : OpName::gradient_sum, weights_made(planned), planned.calls,
        of_product);
  }
  // Most rows of a table of embeddings have no gradient: it is zeros first.
  if (!fused) add(OpName::embedding, embeddings, 1, kActivationBytes + sum);
  for (const PlannedOp& planned : sums) weights.add(planned);
}

}  // namespace engine
