// Whose kernels an engine runs for experts of four-bit floating-point weights and 16-bit inputs.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class FourBitExperts : std::uint8_t {
  own,     // made for the format: faster where many tokens meet an expert
  marlin,  // made for integers, which it expands as it does these: faster where few do
};
constexpr std::array<std::string_view, 2> enum_names(FourBitExperts) { return {"own", "marlin"}; }

}  // namespace engine
