// How a model is trained: batch, pipeline schedule, recomputation, optimizer and what is shared out.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/base/fields.h"
#include "engine/base/units.h"

namespace engine {

// In which order a pipeline stage works on its micro-batches.
enum class Schedule : std::uint8_t {
  gpipe,        // all forward passes, then all backward passes
  one_f_one_b,  // a backward pass after each forward pass, once the pipeline is full
  interleaved,  // the same, with several chunks of layers on each stage
  zero_bubble,  // as one_f_one_b, with the gradients of weights put off to where a stage would wait
};
constexpr std::array<std::string_view, 4> enum_names(Schedule) {
  return {"gpipe", "1f1b", "interleaved", "zero_bubble"};
}

// What is computed again in the backward pass instead of kept.
enum class Recompute : std::uint8_t {
  none,
  attention,  // the attention kernel, from queries, keys and values
  full,       // whole layers, from their inputs
};
constexpr std::array<std::string_view, 3> enum_names(Recompute) {
  return {"none", "attention", "full"};
}

enum class Optimizer : std::uint8_t { adamw, adam8bit, adafactor, muon, sgd };
constexpr std::array<std::string_view, 5> enum_names(Optimizer) {
  return {"adamw", "adam8bit", "adafactor", "muon", "sgd"};
}

// Formats of gradients between micro-batches and of the optimizer's own copy of the weights.
enum class StateFormat : std::uint8_t { fp32, bf16, none };
constexpr std::array<std::string_view, 3> enum_names(StateFormat) {
  return {"fp32", "bf16", "none"};
}

struct TrainSettings {
  std::int64_t sequence = 4096;
  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 512;
  Schedule schedule = Schedule::one_f_one_b;
  std::int64_t virtual_stages = 1;
  Recompute recompute = Recompute::none;
  Optimizer optimizer = Optimizer::adamw;
  StateFormat gradients = StateFormat::fp32;
  StateFormat master_weights = StateFormat::fp32;
  StateFormat moments = StateFormat::fp32;
  std::int64_t zero = 0;
  bool sequence_parallel = false;
  bool overlap = true;
  bool fused = true;
  bool fused_loss = true;
  Bytes reserved_memory{2e9};
  double tokens = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("sequence", self.sequence, "tokens of one sequence", at_least(1));
    visit("micro_batch", self.micro_batch, "sequences of one pass through the model, per replica",
          at_least(1));
    visit("global_batch", self.global_batch, "sequences of one optimizer step, all replicas",
          at_least(1));
    visit("schedule", self.schedule,
          "order of a pipeline's work: gpipe, 1f1b, interleaved (with virtual_stages), zero_bubble",
          any_value);
    visit("virtual_stages", self.virtual_stages,
          "chunks of layers on each pipeline stage; more than one needs schedule: interleaved",
          between(1, 1 << 10));
    visit("recompute", self.recompute,
          "activations computed again in the backward pass: none, those of attention, or whole "
          "layers (full)",
          any_value);
    visit("optimizer", self.optimizer, "the rule that turns gradients into weights", any_value);
    visit("gradients", self.gradients, "format in which gradients are summed and kept", any_value);
    visit("master_weights", self.master_weights,
          "the optimizer's own copy of the weights; none: it works on the weights themselves",
          any_value);
    visit("moments", self.moments,
          "format of what the optimizer remembers of past gradients (adamw, muon, sgd)", any_value);
    visit(
        "zero", self.zero,
        "what data-parallel replicas share out: 0 nothing, 1 optimizer states, 2 gradients too, 3 "
        "weights too (FSDP)",
        between(0, 3));
    visit("sequence_parallel", self.sequence_parallel,
          "norms and residuals are split over the tensor-parallel devices, by sequence", any_value);
    visit("overlap", self.overlap,
          "gradients and gathered weights travel while the device computes", any_value);
    visit(
        "fused", self.fused,
        "norms, rotations and activations are one kernel each, as compilers and training libraries "
        "make them; false: plain PyTorch, several kernels each",
        any_value);
    visit(
        "fused_loss", self.fused_loss,
        "the loss turns logits into their gradients in place; false: logits and gradients are kept "
        "in 16 and in 32 bits",
        any_value);
    visit("reserved_memory", self.reserved_memory,
          "memory outside tensors: context, communication buffers, fragments", non_negative);
    visit("tokens", self.tokens, "tokens of the whole run; 0: no run is planned", non_negative);
  }

  bool operator==(const TrainSettings&) const = default;
};

}  // namespace engine
