// Layers of Megatron-Core on one H200 (tools/gpu/megatron_layers.py), as scenarios.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/outcome.h"
#include "engine/scenario.h"
#include "sweep/language/library.h"

namespace tools {

struct MeasuredLayers {
  std::string what;  // dense, mixture, hybrid or scans, and in which format
  engine::Scenario scenario;
  double seconds = 0;  // of all layers, forward and backward, in one micro-batch
};
engine::Result<std::vector<MeasuredLayers>> megatron_layers(const std::filesystem::path& table,
                                                            const sweep::Library& library);

// Forward and backward passes of one micro-batch.
double seconds_of_a_micro_batch(const engine::Scenario& scenario, const engine::Metrics& metrics);

}  // namespace tools
