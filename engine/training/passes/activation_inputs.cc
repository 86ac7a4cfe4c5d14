#include "engine/training/passes/activation_inputs.h"

#include <variant>

#include "engine/model/expert_places.h"
#include "engine/training/pipeline/stages.h"

namespace engine {
namespace {

// Rows that an activation works on, and inputs that each of them has. Routed experts activate inside their products' kernels.
struct ActivationInputs {
  double rows = 0, values = 0;
};
ActivationInputs activation_inputs_of(const ModelShard& shard, const PlannedOp& op) {
  const double parts = shard.model->mlp == MlpKind::gated ? 2 : 1;
  if (const auto* experts = std::get_if<Moe>(&op.op)) {
    return {copies_on_the_fullest(*experts), parts * double(experts->intermediate)};
  }
  const auto* pass = std::get_if<Elementwise>(&op.op);
  if (pass == nullptr || op.family != Family::act) return {};
  if (op.name == OpName::activation) return {pass->rows, parts * double(shard.intermediate)};
  if (op.name != OpName::shared_activation) return {};
  return {pass->rows, parts * double(shard.shared_intermediate)};
}

}  // namespace

void cast_activation_inputs(const ModelShard& shard, OpList& ops) {
  constexpr double narrow = 1;
  OpList casts;
  for (const PlannedOp& op : ops) {
    const auto [rows, values] = activation_inputs_of(shard, op);
    if (rows <= 0) continue;
    casts.add(OpName::cast_transpose, Family::residual, op.calls,
              Elementwise{.rows = rows,
                          .resident_bytes = 0,
                          .cold_bytes = (value_bytes(shard) + narrow) * rows * values,
                          .flops = 0,
                          .backward = 1});
  }
  for (const PlannedOp& cast : casts) ops.add(cast);
}

}  // namespace engine
