// What an engine does in one of several ways, as settings name them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

// Which running sequences make room for others.
enum class Preemption : std::uint8_t {
  as_policy,  // whom the policy picks when blocks run out
  priority,   // less urgent ones, when a more urgent one lacks blocks or a seat
};
constexpr std::array<std::string_view, 2> enum_names(Preemption) {
  return {"as_policy", "priority"};
}

// When the first token of an answer leaves the engine, where several leave together (serving.stream_interval).
enum class FirstMessage : std::uint8_t {
  at_once,      // alone
  with_others,  // in the first message of as many tokens as all others have
};
constexpr std::array<std::string_view, 2> enum_names(FirstMessage) {
  return {"at_once", "with_others"};
}

}  // namespace engine
