// How a served load and the system's speed get along.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class Saturation : std::uint8_t {
  none,        // not a served load
  stable,      // requests are served as fast as they arrive
  backlogged,  // queues, but they do not keep growing
  overloaded,  // less is finished than arrives: what is inside grows as long as requests arrive
  undecided,   // the run is too short to tell
};
constexpr std::array<std::string_view, 5> enum_names(Saturation) {
  return {"none", "stable", "backlogged", "overloaded", "undecided"};
}

}  // namespace engine
