// Training runs that vendors of TPUs and Gaudi publish, as scenarios.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "tools/validate_serving/named_specs.h"
#include "tools/validate_training/training_runs.h"

namespace tools {

// Of <data>/published_maxtext_tpu.
engine::Result<bool> add_maxtext_runs(const std::filesystem::path& data, NamedSpecs& specs,
                                      std::vector<TrainingRun>& runs);

// Of <data>/published_intel_gaudi.
engine::Result<bool> add_gaudi_runs(const std::filesystem::path& data, NamedSpecs& specs,
                                    std::vector<TrainingRun>& runs);

}  // namespace tools
