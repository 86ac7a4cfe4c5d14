// How the next token is chosen from the logits.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class Sampling : std::uint8_t {
  greedy,  // the largest logit, or one draw over all: a pass or two
  sorted,  // top-k and top-p by sorting the whole vocabulary, as PyTorch does it
};
constexpr std::array<std::string_view, 2> enum_names(Sampling) { return {"greedy", "sorted"}; }

}  // namespace engine
