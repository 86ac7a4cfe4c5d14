#include "engine/training/passes/launches.h"

#include "engine/model/passes.h"

namespace engine {
namespace {

// Plain PyTorch (2.11), counted by its profiler in layers of tools/gpu/train_model.py: 26 kernels forward and 48 backward
// where the model has 9 operations and 14 (train_host.csv). Residual sums, slices and copies are kernels of their own, and
// gradients of weights are added to what is there.
struct EagerKernels {
  Family family;
  double forward, backward;
};
constexpr EagerKernels kEager[] = {{Family::norm, 2, 4},
                                   {Family::rope, 14, 20},
                                   {Family::attn_prefill, 2, 2},
                                   {Family::residual, 1, 2},
                                   {Family::act, 2, 4}};

double eager_kernels(Family family, PassWay way) {
  for (const EagerKernels& entry : kEager) {
    if (entry.family == family) return way == PassWay::forward ? entry.forward : entry.backward;
  }
  return 1;
}

// PyTorch launches backward kernels from C++: 17 to 24 us each where forward ones take 27 (steps of models with 0.35 and 1
// billion weights, 1,024 to 2,048 tokens, train_steps.csv).
constexpr double kEagerBackwardLaunch = 0.7;

// Into the experts and out of them.
constexpr double kProductsOfAnExpert = 2;

// A product that adds to gradients is one kernel.
bool is_part_of_a_product(const PlannedOp& op, const TrainSettings& train) {
  return train.fused_gradients && std::holds_alternative<Elementwise>(op.op) &&
         (op.name == OpName::gradient_sum || op.name == OpName::logits);
}

double kernels_of(const PlannedOp& op, PassWay way, const TrainSettings& train) {
  if (is_part_of_a_product(op, train)) return 0;
  if (const auto* experts = std::get_if<Moe>(&op.op); experts != nullptr && experts->one_by_one) {
    return kProductsOfAnExpert * double(experts->local_experts);
  }
  const bool fused = train.fused && (train.fused_rotation || op.family != Family::rope);
  return fused ? 1 : eager_kernels(op.family, way);
}

// The host waits for the numbers of tokens before it can launch experts one by one. The device has nothing to do until it has
// launched some more: mixtures on an H200 took 0.37 ms longer for it than their kernels (mixture_steps.csv, median of nine),
// on a host with 29 us a launch.
constexpr double kLaunchesBehind = 13;

// What Megatron-Core and Transformer Engine take the host beside launches, fitted to layers on an H200
// (specs/calibration/h200-sxm/megatron_layers.csv): 2.75 ms forward and 2.15 backward, with experts 3.57 and 2.58 more.
constexpr double kLayerBackward = 0.78;
constexpr double kMixture = 1.3;

// Embedding, output and loss belong to no layer. What routed experts do has other shapes in every pass.
bool is_captured(const PlannedOp& op) {
  switch (op.name) {
    case OpName::embedding:
    case OpName::final_norm:
    case OpName::logits:
    case OpName::logits_gather:
    case OpName::loss:
    case OpName::experts:
    case OpName::quantize_experts:
    case OpName::expert_dispatch:
    case OpName::expert_combine:
      return false;
    default:
      return true;
  }
}

}  // namespace

void Launches::add(const Launches& other) {
  kernels += other.kernels;
  one_by_one += other.one_by_one;
  replays += other.replays;
  layers += other.layers;
  waited_for += other.waited_for;
}

// A backward pass has one graph for both of its parts.
Launches launches_of(const OpList& ops, PassWay way, const TrainSettings& train) {
  Launches launches;
  double layers = 0, mixtures = 0;
  for (const PlannedOp& op : ops) {
    const double kernels = op.calls * kernels_of(op, way, train);
    launches.kernels += kernels;
    if (!train.cuda_graphs || !is_captured(op)) launches.one_by_one += kernels;
    if (op.name == OpName::input_norm) layers += op.calls;
    if (std::holds_alternative<Moe>(op.op)) mixtures += op.calls;
  }
  if (way != PassWay::forward && !train.fused) launches.one_by_one *= kEagerBackwardLaunch;
  if (way == PassWay::weights) return launches;
  const double code = way == PassWay::forward ? 1 : kLayerBackward;
  launches.layers = code * ((train.cuda_graphs ? 0 : layers) + kMixture * mixtures);
  if (train.cuda_graphs) launches.replays = layers;
  if (way == PassWay::forward && train.expert_products == ExpertProducts::one_by_one) {
    launches.waited_for = kLaunchesBehind * mixtures;
  }
  return launches;
}

}  // namespace engine
