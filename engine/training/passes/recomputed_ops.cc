#include "engine/training/passes/recomputed_ops.h"

#include "engine/model/expert_places.h"
#include "engine/model/passes.h"
#include "engine/training/passes/kept_activations.h"

namespace engine {
namespace {

bool at_an_end(OpName name) {
  return name == OpName::embedding || name == OpName::final_norm || name == OpName::logits ||
         name == OpName::logits_gather || name == OpName::loss;
}

bool is_attention(OpName name) {
  return name == OpName::attention || name == OpName::attention_window ||
         name == OpName::context_exchange || name == OpName::context_merge;
}

bool is_norm_or_activation(const PlannedOp& op) {
  return op.name == OpName::input_norm || op.name == OpName::mlp_norm || op.family == Family::act;
}

// The last product of a dense layer, and the sum of its shares: no gradient asks for what they give.
bool ends_a_layer(const PlannedOp& op) {
  if (op.name == OpName::down) return true;
  const auto* sum = std::get_if<Collective>(&op.op);
  return op.name == OpName::mlp_reduce && sum != nullptr && sum->pattern != Pattern::all_gather;
}

void add_layer_op(PlannedOp op, const TrainSettings& train, double share, OpList& again) {
  if (at_an_end(op.name)) return;
  op.calls *= share;
  // Of layers that are computed again together, the last one stops.
  if (train.early_stop && ends_a_layer(op)) op.calls *= 1 - 1 / double(train.recompute_layers);
  if (op.calls > 0) again.add(op);
}

// Queries, keys and values, from latents.
bool expands_latents(OpName name) {
  return name == OpName::q_up || name == OpName::kv_up || name == OpName::rope;
}

bool is_first_of_an_mlp(OpName name) { return name == OpName::gate_up || name == OpName::up; }

// From the router to the sum of what experts gave.
bool is_of_a_mixture(OpName name) {
  switch (name) {
    case OpName::router:
    case OpName::shared_gate_up:
    case OpName::shared_activation:
    case OpName::shared_down:
    case OpName::shared_gate:
    case OpName::expert_dispatch:
    case OpName::quantize_experts:
    case OpName::experts:
    case OpName::expert_combine:
      return true;
    default:
      return false;
  }
}

// Sums between devices follow every MLP, of a mixture or not.
double share_of_mixtures(const OpList& forward) {
  double mixtures = 0, dense = 0;
  for (const PlannedOp& op : forward) {
    if (std::holds_alternative<Moe>(op.op)) mixtures += op.calls;
    if (op.name == OpName::down) dense += op.calls;
  }
  return mixtures > 0 ? mixtures / (mixtures + dense) : 0;
}

void add_mixture_op(PlannedOp op, double share_of_sums, OpList& again) {
  if (op.name == OpName::mlp_reduce) {
    op.calls *= share_of_sums;
  } else if (!is_of_a_mixture(op.name)) {
    return;
  }
  if (op.calls > 0) again.add(op);
}

// Experts activate within their kernels, which are not done again as a whole.
void add_activation(const PlannedOp& op, OpList& again) {
  if (is_norm_or_activation(op)) return again.add(op);
  const auto* experts = std::get_if<Moe>(&op.op);
  if (experts == nullptr) return;
  again.add(op.name, Family::act, op.calls,
            activation_pass(copies_on_the_fullest(*experts), double(experts->intermediate),
                            experts->gated));
}

}  // namespace

void recomputed_ops(const OpList& forward, double layers, const TrainSettings& train,
                    OpList& again) {
  const bool whole = train.recompute == Recompute::full && layers > 0;
  const double share = whole ? layers_of(train.recompute_first, layers) / layers : 0;
  const RecomputedParts parts = parts_of(train.recompute);
  const double share_of_sums = parts.experts ? share_of_mixtures(forward) : 0;
  for (const PlannedOp& op : forward) {
    if (whole) add_layer_op(op, train, share, again);
    if (parts.gates && is_first_of_an_mlp(op.name)) again.add(op);
    if (parts.attention && is_attention(op.name)) again.add(op);
    if (parts.latents && expands_latents(op.name)) again.add(op);
    if (parts.experts) add_mixture_op(op, share_of_sums, again);
    const bool done = parts.experts && op.name == OpName::shared_activation;
    if (parts.activations && !done) add_activation(op, again);
  }
}

}  // namespace engine
