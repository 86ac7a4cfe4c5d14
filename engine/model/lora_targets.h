// Which products of a model have low-rank adapters.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class LoraTargets : std::uint8_t { attention, mlp, all, qkv };
constexpr std::array<std::string_view, 4> enum_names(LoraTargets) {
  return {"attention", "mlp", "all", "qkv"};
}

}  // namespace engine
