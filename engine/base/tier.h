// How well founded a time is, and what limits it: the two labels every kernel row carries.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class Tier : std::uint8_t {
  roofline,  // datasheet figures only
  transfer,  // efficiency learned on other devices
  measured,  // one sweep of this device
};
constexpr std::array<std::string_view, 3> enum_names(Tier) {
  return {"roofline", "transfer", "measured"};
}

// What a scenario may ask for. `best` takes the best founded time there is, kernel by kernel.
enum class TierChoice : std::uint8_t { best, roofline, transfer, measured };
constexpr std::array<std::string_view, 4> enum_names(TierChoice) {
  return {"best", "roofline", "transfer", "measured"};
}

enum class Bound : std::uint8_t { compute, memory, l2, launch, network, host };
constexpr std::array<std::string_view, 6> enum_names(Bound) {
  return {"compute", "memory", "l2", "launch", "network", "host"};
}

}  // namespace engine
