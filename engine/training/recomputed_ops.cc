#include "engine/training/recomputed_ops.h"

#include "engine/model/expert_places.h"
#include "engine/model/passes.h"

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

void add_layer_op(PlannedOp op, const TrainSettings& train, OpList& again) {
  if (at_an_end(op.name)) return;
  // Of layers that are computed again together, the last one stops.
  if (train.early_stop && ends_a_layer(op)) op.calls *= 1 - 1 / double(train.recompute_layers);
  if (op.calls > 0) again.add(op);
}

// Queries, keys and values, from latents.
bool expands_latents(OpName name) {
  return name == OpName::q_up || name == OpName::kv_up || name == OpName::rope;
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

void recomputed_ops(const OpList& forward, const TrainSettings& train, OpList& again) {
  for (const PlannedOp& op : forward) {
    switch (train.recompute) {
      case Recompute::none:
        return;
      case Recompute::attention:
        if (is_attention(op.name)) again.add(op);
        break;
      case Recompute::up_projections:
        if (expands_latents(op.name)) again.add(op);
        [[fallthrough]];
      case Recompute::activations:
        add_activation(op, again);
        break;
      case Recompute::full:
        add_layer_op(op, train, again);
        break;
    }
  }
}

}  // namespace engine
