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
  one_shot,  // as custom, but of its own the engine has only the kernel in which every device reads all inputs
};
constexpr std::array<std::string_view, 3> enum_names(AllReduce) {
  return {"custom", "nccl", "one_shot"};
}

// The largest sum that TensorRT-LLM makes in one shot: from there on it calls NCCL (`selectImplementation`, with the two-shot kernel
// switched off). Its calls on H100 say so, too: over eight devices they take 18 us for 0.5 MB, where NCCL takes 20, and 26 of NCCL's
// 27 for 1 MB; over four 13 of 19 for 1 MB and 26 of 29 for 2 MB.
constexpr double largest_one_shot(std::int64_t devices) {
  return devices <= 2 ? 16e6 : devices <= 4 ? 1e6 : 0.5e6;
}

}  // namespace engine
