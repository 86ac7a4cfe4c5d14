// Devices that share a sequence (parallel.cp), and how they come by one another's keys and values.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class ContextExchange : std::uint8_t {
  ring,        // they go from neighbour to neighbour, beside attention
  all_gather,  // every device gathers all of them before attention
  all_to_all,  // each device gets whole sequences of some heads
};
constexpr std::array<std::string_view, 3> enum_names(ContextExchange) {
  return {"ring", "all_gather", "all_to_all"};
}

struct ContextSharing {
  ContextExchange exchange = ContextExchange::ring;
  std::int64_t devices = 1;
  std::int64_t stride = 1;  // from one of them to the next, in the order of devices

  bool operator==(const ContextSharing&) const = default;
};

}  // namespace engine
