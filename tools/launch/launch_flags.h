// The command that starts a serving engine as a point of a run has it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "sweep/language/library.h"
#include "tools/query/points.h"

namespace tools {

enum class LaunchEngine : std::uint8_t { vllm, sglang, tensorrt_llm };
constexpr std::array<std::string_view, 3> enum_names(LaunchEngine) {
  return {"vllm", "sglang", "tensorrt-llm"};
}

// One command a row. Settings that the engine has no flag for are named in a comment behind it, where they are not what the
// engine does by itself; so are mechanisms that make a point what it is. Defaults that mean "one device" are left out. The
// model goes by its repository (tools/launch/checkpoint.h).
std::vector<std::string> launch_commands(const RunRows& run, const std::vector<std::uint32_t>& rows,
                                         LaunchEngine engine, const sweep::Library& library);

}  // namespace tools
