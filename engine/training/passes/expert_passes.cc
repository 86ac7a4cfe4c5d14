#include "engine/training/passes/expert_passes.h"

#include "engine/model/expert_places.h"
#include "engine/model/passes.h"

namespace engine {
namespace {

// Both halves of a gate are bounded and joined again: each value is read and written twice before the gate itself, which is
// part of the experts' kernel.
constexpr double kBoundKernels = 3, kBoundTransfers = 4;
// An expert's bias is weighed as its rows are, added to them, and the rows of all experts are joined, all in 32 bits as weights are,
// and narrowed: fourteen transfers of an output in 16 bits, two kernels for each expert and one for all.
constexpr double kBiasTransfers = 14;
// How many times longer the backward pass of weights with biases takes, whose gradients are summed up over rows (Megatron on an H200, 16
// experts of 2,880 values, megatron_kernels.csv.gz).
constexpr double kBiasBackward = 2.9;
// PyTorch's kernels over halves and parts of rows move their bytes at half the rate of one fused kernel (measured on an H200,
// specs/calibration/h200-sxm/train_passes.csv: 2.1 TB/s against 4.2).
constexpr double kPace = 2;

bool is_exchange(const PlannedOp& op) {
  return op.name == OpName::expert_dispatch || op.name == OpName::expert_combine;
}

}  // namespace

void take_exchange(OpList& ops, OpList& exchange) {
  OpList others;
  for (const PlannedOp& op : ops) (is_exchange(op) ? exchange : others).add(op);
  ops = others;
}

void add_expert_passes(const PlannedOp& experts, OpList& ops) {
  const auto& op = std::get<Moe>(experts.op);
  const double copies = copies_on_the_fullest(op);
  const auto pass = [&](double kernels, double values) {
    return Elementwise{.rows = copies,
                       .resident_bytes = 0,
                       .cold_bytes = kPace * values * kActivationBytes / kernels,
                       .flops = 0};
  };
  const double inner = (op.gated ? 2 : 1) * double(op.intermediate);
  ops.add(OpName::experts, Family::act, kBoundKernels * experts.calls,
          pass(kBoundKernels, kBoundTransfers * copies * inner));
  // Biases of outputs are no part of an activation, and not computed again with it.
  const double kernels = 2 * double(op.local_experts) + 1;
  Elementwise biases = pass(kernels, kBiasTransfers * copies * double(op.hidden));
  biases.backward = kBiasBackward;
  ops.add(OpName::experts, Family::residual, kernels * experts.calls, biases);
}

}  // namespace engine
