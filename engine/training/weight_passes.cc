#include "engine/training/weight_passes.h"

#include "engine/model/passes.h"
#include "engine/training/state_bytes.h"

namespace engine {
namespace {

// Weights in 16 bits become narrow ones, and narrow ones along the other side, once a step: they are read for their
// maximum and to be cast, and written twice.
constexpr double kCastBytes = 2 + 2 + 1 + 1;

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
  const double passes = double(train.global_batch / (train.micro_batch * replicas));
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

void add_sums(const TrainSettings& train, OpList& weights) {
  OpList sums;
  for (const PlannedOp& planned : weights) {
    const double made = weights_made(planned);
    if (made <= 0) continue;
    sums.add(OpName::gradient_sum, Family::residual, planned.calls,
             Elementwise{.rows = 1,
                         .resident_bytes = 0,
                         .cold_bytes = made * (kActivationBytes + 2 * bytes_of(train.gradients)),
                         .flops = 0});
  }
  for (const PlannedOp& planned : sums) weights.add(planned);
}

}  // namespace engine
