// What the public benchmark behind the dated rows of silicon_e2e set for DeepSeek-R1 in two pools on H100. Rows state
// prompts and clients; the recipes state the rest (InferenceX, benchmarks/multi_node/srt-slurm-recipes/dsr1).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/scenario.h"

namespace tools {

// The scenarios that a row with this number of clients may be of: without drafts, with them, or either. `scenario` has the load, the parts
// and both roles; what the recipe sets is written over it. Empty: no recipe has so many clients.
std::vector<engine::Scenario> sglang_recipes(const engine::Scenario& scenario);
std::vector<engine::Scenario> trtllm_recipes(const engine::Scenario& scenario, std::int64_t prompt);

}  // namespace tools
