#include "engine/tasks/train/memory_problem.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "engine/memory/footprint.h"
#include "engine/training/passes/state_bytes.h"

namespace engine {
namespace {

// Bytes for one weight of an adapter that a device has whole.
double adapter_bytes(const TrainSettings& train) {
  const StateBytes bytes = state_bytes(train, false);
  return std::max(bytes.weights, bytes.master) + bytes.gradients + bytes.moments;
}

// The settings with which adapters come in, where there are any: QLoRA's own script has them in 16 bits, and offers moments in 8.
std::string smaller_adapters(const TrainSettings& train, const TrainMemory& memory, Bytes over) {
  if (!train.has_adapters() || train.zero > 0 || train.offload_optimizer) return "";
  const double trained = memory.gradients.value / bytes_of(train.gradients);
  const auto fits = [&](const TrainSettings& other) {
    return (adapter_bytes(train) - adapter_bytes(other)) * trained >= over.value;
  };
  TrainSettings narrow = train;
  narrow.gradients = StateFormat::bf16;
  narrow.master_weights = StateFormat::none;
  constexpr const char* in_16_bits = "train.gradients: bf16 and train.master_weights: none";
  if (fits(narrow)) return fmt::format("; with adapters in 16 bits they fit ({})", in_16_bits);
  narrow.optimizer = Optimizer::adam8bit;
  if (!fits(narrow)) return "";
  return fmt::format(
      "; with adapters in 16 bits and moments in 8 they fit ({}, train.optimizer: "
      "adam8bit)",
      in_16_bits);
}

}  // namespace

std::optional<Refusal> memory_problem(const TrainStepTime& step, const TrainSettings& train) {
  const TrainMemory& memory = step.memory;
  if (memory.total() <= step.capacity) return std::nullopt;
  const Bytes over = memory.total() - step.capacity;
  return Refusal{
      ReasonClass::memory,
      fmt::format("stage {} does not fit: weights {}, gradients {}, optimizer {}, activations {}, "
                  "logits {} and the rest {} exceed {} by {}{}",
                  step.peak_stage, in_gb(memory.weights), in_gb(memory.gradients),
                  in_gb(memory.optimizer), in_gb(memory.activations + memory.at_work),
                  in_gb(memory.logits),
                  in_gb(memory.gathered + memory.context + memory.reference + memory.reserved),
                  in_gb(step.capacity), in_gb(over), smaller_adapters(train, memory, over))};
}

}  // namespace engine
