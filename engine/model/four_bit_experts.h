// Whose kernels an engine runs for experts of four-bit floating-point weights and 16-bit inputs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/hardware/dtype.h"

namespace engine {

enum class FourBitExperts : std::uint8_t {
  own,     // made for the format: faster where many tokens meet an expert
  marlin,  // made for integers, which it expands as it does these: faster where few do
};
constexpr std::array<std::string_view, 2> enum_names(FourBitExperts) { return {"own", "marlin"}; }

// They expand weights of four bits for inputs of 16, and run nothing else.
constexpr bool marlin_runs(FourBitExperts kernels, Dtype weights, Dtype activations) {
  return kernels == FourBitExperts::marlin && bytes_of(weights) < 1 && bytes_of(activations) == 2;
}

// Products of Marlin's kernels have multiples of 256 columns and of 128 rows of weights; engines fill them up with
// zeros, from where weights are loaded (vLLM's mxfp4_round_up_hidden_size_and_intermediate_size).
struct ExpertWidths {
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
};
constexpr ExpertWidths marlin_widths(ExpertWidths own) {
  const auto up_to = [](std::int64_t size, std::int64_t tile) {
    return (size + tile - 1) / tile * tile;
  };
  return {up_to(own.hidden, 256), up_to(own.intermediate, 128)};
}

}  // namespace engine
