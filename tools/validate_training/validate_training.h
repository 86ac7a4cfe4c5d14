// What the verb `validate training` does: training steps and runs beside predictions.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/result.h"
#include "results/text_table.h"
#include "sweep/language/library.h"

namespace tools {

struct TrainingValidation {
  std::string text;
  results::TextTable table;  // one row per published run
};

// Nothing was fitted to published runs; kernels of eager passes and optimizers were fitted to the H200's steps.
engine::Result<TrainingValidation> validate_training(const std::filesystem::path& data,
                                                     const sweep::Library& library);

}  // namespace tools
