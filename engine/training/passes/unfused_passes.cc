#include "engine/training/passes/unfused_passes.h"

#include "engine/model/passes.h"

namespace engine {
namespace {

// How many times longer than one fused kernel a pass takes that is several kernels (PyTorch 2.11, eager): kernels of eager steps with 1 and
// 8 billion weights on an H200 (specs/calibration/h200-sxm/train_phase_kernels.csv.gz).
struct Unfused {
  Family family;
  double forward, backward;
};
constexpr Unfused kUnfused[] = {{Family::norm, 1.5, 1.3}, {Family::act, 3.8, 2.1}};
// Transfers of each value that a rotation turns. It is written as slices, products, sums and concatenations, with heads in another order
// than in memory.
constexpr Unfused kUnfusedRotation{Family::rope, 28, 25};
// Of each value that is turned, forward and backward (model/passes.h, model/backward_ops.cc).
constexpr Unfused kRotationFlops{Family::rope, 3, 6};

// Which passes of a model are several kernels.
struct Unfusing {
  bool only_rotations, gated;
};

void unfuse(double Unfused::*way, const Unfusing& which, Family family, Elementwise& pass) {
  if (family == Family::rope) {
    const double turned = pass.flops / (kRotationFlops.*way);
    pass.resident_bytes = kUnfusedRotation.*way * turned * kActivationBytes;
    pass.cold_bytes = 0;
  }
  // Activations without a gate are one kernel anyway.
  if (which.only_rotations || (family == Family::act && !which.gated)) return;
  for (const Unfused& entry : kUnfused) {
    if (family != entry.family) continue;
    pass.resident_bytes *= entry.*way;
    pass.cold_bytes *= entry.*way;
  }
}

void unfuse(double Unfused::*way, const Unfusing& which, OpList& ops) {
  OpList unfused;
  for (PlannedOp op : ops) {
    auto* pass = std::get_if<Elementwise>(&op.op);
    if (pass != nullptr && op.name != OpName::experts) unfuse(way, which, op.family, *pass);
    unfused.add(op);
  }
  ops = unfused;
}

}  // namespace

void unfuse_passes(const ModelSpec& model, const TrainSettings& train, PassOps& ops) {
  if (train.fused && train.fused_rotation) return;
  const Unfusing which{.only_rotations = train.fused, .gated = model.mlp == MlpKind::gated};
  unfuse(&Unfused::forward, which, ops.forward);
  unfuse(&Unfused::forward, which, ops.recomputed);
  unfuse(&Unfused::backward, which, ops.inputs);
}

}  // namespace engine
