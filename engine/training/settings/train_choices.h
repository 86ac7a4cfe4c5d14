// What a training library may do one way or another, by name.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

// In which order a pipeline stage works on its micro-batches.
enum class Schedule : std::uint8_t {
  gpipe,        // all forward passes, then all backward passes
  one_f_one_b,  // a backward pass after each forward pass, once the pipeline is full
  interleaved,  // the same, with several chunks of layers on each stage
  zero_bubble,  // as one_f_one_b, with the gradients of weights put off to where a stage would wait
  dualpipe,     // micro-batches enter at both ends, and every stage has the chunks of both ways
  dualpipe_v,   // the same, folded: chunks go down the stages and up again
};
constexpr std::array<std::string_view, 6> enum_names(Schedule) {
  return {"gpipe", "1f1b", "interleaved", "zero_bubble", "dualpipe", "dualpipe_v"};
}
// Forward passes of one way go on beside backward passes of the other.
constexpr bool is_dual(Schedule schedule) {
  return schedule == Schedule::dualpipe || schedule == Schedule::dualpipe_v;
}

// Whether a stage sends what it made before it goes on, rather than beside that.
constexpr bool sends_between_passes(Schedule schedule) {
  return !is_dual(schedule) && schedule != Schedule::zero_bubble;
}

// What is computed again in the backward pass instead of kept.
enum class Recompute : std::uint8_t {
  none,
  attention,       // the attention kernel, from queries, keys and values
  full,            // whole layers, from their inputs
  activations,     // norms and activations, from their inputs
  up_projections,  // these, and products that expand latents to queries, keys and values
  experts,         // norms and activations, and the whole MLPs of mixtures
  experts_and_attention,
  attention_and_gates,  // norms and activations, attention, and the first products of dense MLPs
};
constexpr std::array<std::string_view, 8> enum_names(Recompute) {
  return {"none",
          "attention",
          "full",
          "activations",
          "up_projections",
          "experts",
          "experts_and_attention",
          "attention_and_gates"};
}
// Of layers that are not computed again as a whole.
struct RecomputedParts {
  bool attention = false;
  bool activations = false;  // and norms
  bool latents = false;      // expanded to queries, keys and values
  bool experts = false;      // with their router, exchange and shared expert
  bool gates = false;        // first products of dense MLPs
};
constexpr RecomputedParts parts_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
    case Recompute::full:
      return {};
    case Recompute::attention:
      return {.attention = true};
    case Recompute::activations:
      return {.activations = true};
    case Recompute::up_projections:
      return {.activations = true, .latents = true};
    case Recompute::experts:
      return {.activations = true, .experts = true};
    case Recompute::experts_and_attention:
      return {.attention = true, .activations = true, .experts = true};
    case Recompute::attention_and_gates:
      return {.attention = true, .activations = true, .gates = true};
  }
  return {};
}

// Which weights are trained.
enum class Method : std::uint8_t {
  full,
  lora,         // low-rank adapters beside frozen products
  qlora,        // the same, with the frozen products' weights in four bits
  last_layers,  // the last layers and the output
};
constexpr std::array<std::string_view, 4> enum_names(Method) {
  return {"full", "lora", "qlora", "last_layers"};
}

constexpr bool has_adapters(Method method) {
  return method == Method::lora || method == Method::qlora;
}
// Whether weights of the model itself change.
constexpr bool changes_weights(Method method) { return !has_adapters(method); }

enum class Optimizer : std::uint8_t { adamw, adam8bit, adafactor, muon, sgd };
constexpr std::array<std::string_view, 5> enum_names(Optimizer) {
  return {"adamw", "adam8bit", "adafactor", "muon", "sgd"};
}

// Whether train.moments says in which format it remembers past gradients; others have one of their own.
constexpr bool has_stated_moments(Optimizer optimizer) {
  return optimizer != Optimizer::adam8bit && optimizer != Optimizer::adafactor;
}

// Formats of gradients between micro-batches and of the optimizer's own copy of the weights.
enum class StateFormat : std::uint8_t { fp32, bf16, none };
constexpr std::array<std::string_view, 3> enum_names(StateFormat) {
  return {"fp32", "bf16", "none"};
}

// What becomes of the memory of gradients from step to step.
enum class GradientBuffers : std::uint8_t {
  kept,  // they have memory of their own that stays (Megatron's buffers)
  remade,  // they are freed once weights are updated, and made anew by backward passes (PyTorch's default)
  freed,  // each is freed as soon as a backward pass has made it, since that updates its weight at once
};
constexpr std::array<std::string_view, 3> enum_names(GradientBuffers) {
  return {"kept", "remade", "freed"};
}

// What replicas that share out weights gather at a time.
enum class GatheredUnit : std::uint8_t {
  layer,   // a whole layer in one call (FSDP)
  matrix,  // each matrix by itself (XLA's partitioner)
};
constexpr std::array<std::string_view, 2> enum_names(GatheredUnit) { return {"layer", "matrix"}; }

// How tokens get to the devices of their experts.
enum class Dispatcher : std::uint8_t {
  deepep,  // a token goes once to each node and device that has one of its experts (DeepEP, HybridEP)
  alltoall,  // every copy of a token goes straight to its expert, by NCCL
};
constexpr std::array<std::string_view, 2> enum_names(Dispatcher) { return {"deepep", "alltoall"}; }

// How the products of a device's experts are launched.
enum class ExpertProducts : std::uint8_t {
  grouped,     // one kernel for all experts (PyTorch's and CUTLASS's grouped products)
  one_by_one,  // one kernel for each, side by side (Transformer Engine on Hopper and before)
};
constexpr std::array<std::string_view, 2> enum_names(ExpertProducts) {
  return {"grouped", "one_by_one"};
}

// Kernels of attention: the fastest that the GPU has, or an earlier generation of FlashAttention.
enum class AttentionGeneration : std::uint8_t { best, flash_3, flash_2, flash_1, triton };
constexpr std::array<std::string_view, 5> enum_names(AttentionGeneration) {
  return {"best", "flash_3", "flash_2", "flash_1", "triton"};
}

// In which order degrees lie on devices: neighbours first.
enum class DeviceOrder : std::uint8_t {
  replicas_inside,  // replicas of a stage lie next to one another (Megatron's default)
  stages_inside,    // stages of a replica do (Megatron's --use-tp-pp-dp-mapping)
};
constexpr std::array<std::string_view, 2> enum_names(DeviceOrder) {
  return {"tp_cp_dp_pp", "tp_cp_pp_dp"};
}

// A published law of the loss that a dense model reaches (engine/training/run/scaling_law.h).
enum class ScalingLaw : std::uint8_t { none, hoffmann_2022, besiroglu_2024 };
constexpr std::array<std::string_view, 3> enum_names(ScalingLaw) {
  return {"none", "hoffmann_2022", "besiroglu_2024"};
}

}  // namespace engine
