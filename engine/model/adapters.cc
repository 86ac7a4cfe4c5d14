#include "engine/model/adapters.h"

namespace engine {
namespace {

bool into_attention(OpName name) {
  return name == OpName::qkv || name == OpName::q_down || name == OpName::q_up ||
         name == OpName::kv_down || name == OpName::kv_up;
}

bool of_mlp(OpName name) {
  return name == OpName::gate_up || name == OpName::up || name == OpName::down ||
         name == OpName::shared_gate_up || name == OpName::shared_down;
}

}  // namespace

double joined_products(OpName name) {
  if (name == OpName::qkv) return 3;
  if (name == OpName::gate_up || name == OpName::shared_gate_up) return 2;
  return 1;
}

bool has_adapter(OpName name, LoraTargets targets) {
  switch (targets) {
    case LoraTargets::qkv:
      return into_attention(name);
    case LoraTargets::attention:
      return into_attention(name) || name == OpName::attention_out;
    case LoraTargets::mlp:
      return of_mlp(name);
    case LoraTargets::all:
      break;
  }
  return into_attention(name) || name == OpName::attention_out || of_mlp(name);
}

void add_adapter(const PlannedOp& product, LoraTargets targets, std::int64_t rank, double adapters,
                 OpList& ops) {
  const auto* gemm = std::get_if<Gemm>(&product.op);
  if (gemm == nullptr || !has_adapter(product.name, targets)) return;
  const double joined = joined_products(product.name);
  ops.add(OpName::adapter, Family::lora, product.calls * joined,
          Lora{.tokens = double(gemm->m),
               .adapters = adapters,
               .rank = rank,
               .input = gemm->k,
               .output = std::int64_t(double(gemm->n) / joined)});
}

double adapter_weights(const OpList& ops) {
  double weights = 0;
  for (const PlannedOp& planned : ops) {
    if (const auto* lora = std::get_if<Lora>(&planned.op)) {
      weights += planned.calls * double(lora->rank) * double(lora->input + lora->output);
    }
    const auto* product = std::get_if<Gemm>(&planned.op);
    if (product != nullptr && planned.name == OpName::adapter) {
      weights += planned.calls * double(product->n) * double(product->k);
    }
  }
  return weights;
}

Bytes adapter_bytes(const ModelShard& shard) {
  BatchShape batch;
  batch.prefill_tokens = batch.adapters = 1;
  OpList ops;
  token_ops(shard, batch, ops);
  const double stages = double(shard.parallel.pp);
  return Bytes{adapter_weights(ops) / stages * 2};
}

}  // namespace engine
