// Training runs submitted to MLPerf, as scenarios.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "tools/validate_serving/named_specs.h"
#include "tools/validate_training/training_runs.h"

namespace tools {

// Of <data>/published_mlperf_training.
engine::Result<bool> add_mlperf_runs(const std::filesystem::path& data, NamedSpecs& specs,
                                     std::vector<TrainingRun>& runs);

}  // namespace tools
