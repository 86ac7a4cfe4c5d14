#include "engine/training/adapters.h"

namespace engine {
namespace {

// Weights of the products that four bits are kept of.
double narrow_weights(const PlannedOp& planned) {
  if (const auto* experts = std::get_if<Moe>(&planned.op)) {
    return double(experts->local_experts) * (experts->gated ? 3 : 2) * double(experts->hidden) *
           double(experts->intermediate);
  }
  const auto* gemm = std::get_if<Gemm>(&planned.op);
  if (gemm == nullptr || !has_adapter(planned.name, LoraTargets::all)) return 0;
  return double(gemm->n) * double(gemm->k);
}

}  // namespace

void add_with_adapters(const PlannedOp& planned, const TrainSettings& train, OpList& ops) {
  if (const double weights = narrow_weights(planned);
      train.method == Method::qlora && weights > 0) {
    ops.add(OpName::dequantize, Family::residual, planned.calls,
            Elementwise{.rows = 1,
                        .resident_bytes = 0,
                        .cold_bytes = weights * (kFourBitBytes + 2),
                        .flops = weights});
  }
  ops.add(planned);
  add_adapter(planned, train.lora_targets, train.lora_rank, 1, ops);
}

void keep_adapters(OpList& weights) {
  OpList kept;
  for (const PlannedOp& planned : weights) {
    if (planned.name == OpName::adapter) kept.add(planned);
  }
  weights = kept;
}

}  // namespace engine
