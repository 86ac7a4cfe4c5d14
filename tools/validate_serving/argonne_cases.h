// The rows of argonne_llm_inference_bench: one batch, all at once, and how long it took.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/library.h"
#include "tools/validate_serving/served_case.h"

namespace tools {

// Every row of the table, those that cannot be compared with their reason.
engine::Result<std::vector<ServedCase>> argonne_cases(const std::filesystem::path& file,
                                                      const sweep::Library& library);

}  // namespace tools
