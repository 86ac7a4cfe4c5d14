// Whose all-reduce an engine runs among the devices of a node.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class AllReduce : std::uint8_t {
  custom,  // the engine's own where it is faster, as it is for small messages; else the library's
  nccl,    // always the general library's
};
constexpr std::array<std::string_view, 2> enum_names(AllReduce) { return {"custom", "nccl"}; }

}  // namespace engine
