#include "engine/training/passes/adapters.h"

#include "engine/model/passes.h"

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

bool is_summed_up(OpName name) {
  return name == OpName::attention_out || name == OpName::down || name == OpName::shared_down;
}

// All tokens have the same adapter: two thin products, whose result is scaled and added to that of the frozen one. Backward,
// its gradient is scaled, and those of both inputs are added up (Megatron-Bridge, PEFT).
void add_products(const PlannedOp& planned, const TrainSettings& train, double split, OpList& ops) {
  const auto* frozen = std::get_if<Gemm>(&planned.op);
  if (frozen == nullptr || !has_adapter(planned.name, train.lora_targets)) return;
  const double joined = train.joined_adapters ? 1 : joined_products(planned.name);
  const double tokens = double(frozen->m);
  const auto output = std::int64_t(double(frozen->n) / joined);
  const double calls = planned.calls * joined;
  const Dtype format = is_wide(frozen->activations) ? frozen->activations : Dtype::bf16;
  const auto add_product = [&](std::int64_t n, std::int64_t k) {
    ops.add(OpName::adapter, Family::gemm, calls,
            Gemm{.m = frozen->m, .n = n, .k = k, .weights = format, .activations = format});
  };
  add_product(train.lora_rank, frozen->k);
  add_product(output, train.lora_rank);
  // Where a sequence is split, devices add up their own part of what they summed up with others.
  const double rows = is_summed_up(planned.name) ? tokens / split : tokens;
  const double values = rows * double(output), inputs = tokens * double(frozen->k);
  const double wider = bytes_of(format) / kActivationBytes;
  Elementwise scaled = pass_over(rows, wider * values, wider * values, values);
  scaled.backward = 1;
  Elementwise added = pass_over(rows, wider * 2 * values, wider * values, values);
  added.backward = inputs / values;
  ops.add(OpName::adapter, Family::residual, calls, scaled);
  ops.add(OpName::adapter, Family::residual, calls, added);
}

}  // namespace

void add_with_adapters(const PlannedOp& planned, const TrainSettings& train, double split,
                       OpList& ops) {
  if (const double weights = narrow_weights(planned);
      train.method == Method::qlora && weights > 0) {
    ops.add(OpName::dequantize, Family::residual, planned.calls,
            Elementwise{.rows = 1,
                        .resident_bytes = 0,
                        .cold_bytes = weights * (kFourBitBytes + 2),
                        .flops = weights});
  }
  ops.add(planned);
  add_products(planned, train, split, ops);
}

void keep_adapters(OpList& weights) {
  OpList kept;
  for (const PlannedOp& planned : weights) {
    if (planned.name == OpName::adapter) kept.add(planned);
  }
  weights = kept;
}

}  // namespace engine
