// Which kernels of a layer give what they compute in the narrow format that the next product reads. After others a kernel of its own makes it
// narrow. Blocks and groups have scales that are found on the way, and are always made so.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"
#include "engine/hardware/dtype.h"

namespace engine {

enum class NarrowOutputs : std::uint8_t {
  none,
  activations,  // of MLPs
  all,          // and attention
};
constexpr std::array<std::string_view, 3> enum_names(NarrowOutputs) {
  return {"none", "activations", "all"};
}

// One scale for a whole tensor or token is known before the values are.
constexpr bool scaled_as_a_whole(Dtype format, std::int64_t group) {
  return format == Dtype::fp8 && group > kLargestBlock;
}

}  // namespace engine
