#include "engine/training/passes/newton_schulz.h"

#include <algorithm>

namespace engine {
namespace {

constexpr double kIterations = 5;

// X becomes a X + (b A + c A A) X with A = X X^T, where X lies on its longer side.
void add_matrices(std::int64_t rows, std::int64_t columns, double count, OpList& ops) {
  const std::int64_t shorter = std::min(rows, columns), longer = std::max(rows, columns);
  const auto product = [&](std::int64_t n, std::int64_t k) {
    ops.add(OpName::optimizer, Family::gemm, kIterations * count,
            Gemm{.m = shorter, .n = n, .k = k});
  };
  product(shorter, longer);
  product(shorter, shorter);
  product(longer, shorter);
}

bool is_of_a_layer(OpName name) {
  return name != OpName::logits && name != OpName::adapter && name != OpName::router;
}

}  // namespace

void add_newton_schulz(const OpList& forward, const StateSharing& sharers, OpList& ops) {
  for (const PlannedOp& op : forward) {
    if (const auto* product = std::get_if<Gemm>(&op.op); product && is_of_a_layer(op.name)) {
      add_matrices(product->n, product->k, op.calls * double(product->batch) / sharers.dense, ops);
    } else if (const auto* experts = std::get_if<Moe>(&op.op)) {
      const double count = op.calls * double(experts->local_experts) / sharers.experts;
      add_matrices((experts->gated ? 2 : 1) * experts->intermediate, experts->hidden, count, ops);
      add_matrices(experts->hidden, experts->intermediate, count, ops);
    }
  }
}

}  // namespace engine
