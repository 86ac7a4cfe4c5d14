// The attention kernels of an engine, as settings name them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

// Whose attention kernels an engine runs.
enum class AttentionKernels : std::uint8_t {
  planned,  // work is divided by its size (FlashInfer, TensorRT-LLM), or in kernels of its own
  flash_attention,  // FlashAttention, whose version follows the device
};
constexpr std::array<std::string_view, 2> enum_names(AttentionKernels) {
  return {"planned", "flash_attention"};
}

// How a step with prompts and decodes attends.
enum class MixedAttention : std::uint8_t {
  automatic,   // as the engine's kernels have it
  separate,    // a kernel for prompts and one for decodes
  joined,      // one kernel, the one for prompts
  overlapped,  // a kernel for prompts and one for decodes, at the same time
};
constexpr std::array<std::string_view, 4> enum_names(MixedAttention) {
  return {"auto", "separate", "joined", "overlapped"};
}

// Into how many parts the decode kernel splits the keys of a sequence.
enum class DecodeParts : std::uint8_t {
  automatic,  // as the engine's kernels have it
  by_length,  // long sequences get more: unequal contexts take as long as equal ones
  even,       // all get as many: the longest is the last to be done
};
constexpr std::array<std::string_view, 3> enum_names(DecodeParts) {
  return {"auto", "by_length", "even"};
}

}  // namespace engine
