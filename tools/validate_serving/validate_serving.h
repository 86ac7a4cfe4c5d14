// What the verb `validate serving` does: real serving runs, replayed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/resources.h"
#include "results/text_table.h"
#include "sweep/language/library.h"
#include "tools/validate_serving/vllm_runs.h"

namespace tools {

struct ServingValidation {
  std::string text;
  results::TextTable table;  // one row a figure of a run
};

engine::Result<ServingValidation> validate_serving(const std::filesystem::path& data,
                                                   const sweep::Library& library);

// The library's transfer parameters, of well-made kernels and of engines.
engine::Result<engine::Resources> transfer_resources(const sweep::Library& library);

// Calibrations for a replay: the library's transfer parameters and, where the run's own machine was
// profiled, a measured one under the name of the device.
engine::Result<engine::Resources> replay_resources(const MeasuredRun& run,
                                                   const sweep::Library& library);

}  // namespace tools
