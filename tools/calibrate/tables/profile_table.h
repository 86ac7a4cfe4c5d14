// Profiles of llmservingsim_profiles as a kernel table, from which a measured calibration is made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/model_spec.h"
#include "results/text_table.h"
#include "sweep/language/library.h"
#include "tools/calibrate/tables/kernel_table.h"

namespace tools {

// The folders of a profile, one a degree of tensor parallelism: "tp2".
struct ProfileDegree {
  std::int64_t tp = 1;
  std::filesystem::path folder;
};
std::vector<ProfileDegree> profile_degrees(const std::filesystem::path& folder);

// `folder` has tp1, tp2, ... with dense.csv, per_sequence.csv and attention.csv.gz. Of the calls of
// attention that mix prompts and decodes, those beside a middling prompt are taken.
engine::Result<results::TextTable> profile_table(const std::filesystem::path& folder,
                                                 const engine::ModelSpec& model);

// The model of a profile: its folder is MODEL/FORMAT, named as the makers of models do.
engine::Result<engine::ModelSpec> profiled_model(const std::filesystem::path& folder,
                                                 const sweep::Library& library);

// Leaves in a profile's table what other devices can learn from. Its passes are other kernels than a step's
// here, and decodes that were given to the kernel for prompts are that engine's choice.
void keep_shared_kernels(KernelTable& table);

}  // namespace tools
