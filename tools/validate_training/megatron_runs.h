// Runs that Megatron-Bridge publishes, as scenarios.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "tools/validate_serving/named_specs.h"
#include "tools/validate_training/training_runs.h"

namespace tools {

// Of <data>/train_megatron_bridge, one file a machine.
engine::Result<bool> add_megatron_runs(const std::filesystem::path& data, NamedSpecs& specs,
                                       std::vector<TrainingRun>& runs);

}  // namespace tools
