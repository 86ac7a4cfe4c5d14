#include "engine/training/adapters.h"

namespace engine {
namespace {

// Products that one kernel does together have an adapter each.
double joined_products(OpName name) {
  if (name == OpName::qkv) return 3;
  if (name == OpName::gate_up || name == OpName::shared_gate_up) return 2;
  return 1;
}

bool of_attention(OpName name) {
  return name == OpName::qkv || name == OpName::q_down || name == OpName::q_up ||
         name == OpName::kv_down || name == OpName::kv_up || name == OpName::attention_out;
}

bool of_mlp(OpName name) {
  return name == OpName::gate_up || name == OpName::up || name == OpName::down ||
         name == OpName::shared_gate_up || name == OpName::shared_down;
}

// Weights of the products that four bits are kept of.
double narrow_weights(const PlannedOp& planned) {
  if (const auto* experts = std::get_if<Moe>(&planned.op)) {
    return double(experts->local_experts) * (experts->gated ? 3 : 2) * double(experts->hidden) *
           double(experts->intermediate);
  }
  const auto* gemm = std::get_if<Gemm>(&planned.op);
  if (gemm == nullptr || !(of_attention(planned.name) || of_mlp(planned.name))) return 0;
  return double(gemm->n) * double(gemm->k);
}

}  // namespace

bool has_adapter(OpName name, LoraTargets targets) {
  return (targets != LoraTargets::mlp && of_attention(name)) ||
         (targets != LoraTargets::attention && of_mlp(name));
}

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
  const auto* gemm = std::get_if<Gemm>(&planned.op);
  if (gemm == nullptr || !has_adapter(planned.name, train.lora_targets)) return;
  const double joined = joined_products(planned.name);
  ops.add(OpName::adapter, Family::lora, planned.calls * joined,
          Lora{.tokens = double(gemm->m),
               .adapters = 1,
               .rank = train.lora_rank,
               .input = gemm->k,
               .output = std::int64_t(double(gemm->n) / joined)});
}

double adapter_weights(const OpList& ops) {
  double weights = 0;
  for (const PlannedOp& planned : ops) {
    if (const auto* lora = std::get_if<Lora>(&planned.op)) {
      weights += planned.calls * double(lora->rank) * double(lora->input + lora->output);
    }
  }
  return weights;
}

void keep_adapters(OpList& weights) {
  OpList kept;
  for (const PlannedOp& planned : weights) {
    if (planned.name == OpName::adapter) kept.add(planned);
  }
  weights = kept;
}

}  // namespace engine
