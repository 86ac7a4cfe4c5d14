// When an engine runs the experts that every token goes through.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class SharedExperts : std::uint8_t {
  after,   // one after the other with those that tokens choose
  beside,  // in a stream of their own
};
constexpr std::array<std::string_view, 2> enum_names(SharedExperts) { return {"after", "beside"}; }

// Steps of fewer tokens than this run them beside others: about vLLM's limit (VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD). On an H200 little
// of them is hidden from there on (specs/calibration/h200-sxm/shared_beside.csv), and TensorRT-LLM has one stream for prompts.
constexpr double kTokensBeside = 256;

}  // namespace engine
