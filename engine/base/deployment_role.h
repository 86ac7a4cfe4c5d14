// The deployments that a point may have, by name: labels of rows that say which one did the work.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace engine {

enum class DeploymentRole : std::uint8_t {
  main,
  prefill,    // reads prompts for the main one
  draft,      // proposes tokens that the main one verifies
  rollout,    // makes samples that the main one is trained on
  neighbour,  // another model on the main one's devices
  encode,     // turns images into tokens of prompts
  rerank,     // looks at passages that were found for a prompt
};
constexpr std::array<std::string_view, 7> enum_names(DeploymentRole) {
  return {"main", "prefill", "draft", "rollout", "neighbour", "encode", "rerank"};
}

}  // namespace engine
