// Profiles of llmservingsim_profiles as a kernel table, from which a measured calibration is made.
#pragma once

#include <filesystem>

#include "engine/base/result.h"
#include "engine/model/model_spec.h"
#include "results/text_table.h"

namespace tools {

// `folder` has tp1, tp2, ... with dense.csv, per_sequence.csv and attention.csv.gz. Of the calls of
// attention that mix prompts and decodes, those beside a middling prompt are taken.
engine::Result<results::TextTable> profile_table(const std::filesystem::path& folder,
                                                 const engine::ModelSpec& model);

}  // namespace tools
