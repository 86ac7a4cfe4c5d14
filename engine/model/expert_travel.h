// How an engine brings tokens to experts on other devices, and results back.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class ExpertTravel : std::uint8_t {
  automatic,    // the faster of the next two
  low_latency,  // each copy of a token by itself, straight into the receiver's buffer
  normal,       // one copy to a node, which hands it on
  gathered,     // every device gets all tokens; what it made of them is summed where they came from
  switched,     // as automatic over one switch that joins all of the devices, else gathered
};
constexpr std::array<std::string_view, 5> enum_names(ExpertTravel) {
  return {"auto", "low_latency", "normal", "gathered", "switched"};
}

}  // namespace engine
