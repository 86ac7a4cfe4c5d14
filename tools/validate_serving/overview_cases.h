// The rows of trtllm_perf_overview: many requests at once, and the tokens a second that came of them.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/library.h"
#include "tools/validate_serving/served_case.h"

namespace tools {

// Every row of every table in the folder, those that cannot be compared with their reason.
engine::Result<std::vector<ServedCase>> overview_cases(const std::filesystem::path& folder,
                                                       const sweep::Library& library);

}  // namespace tools
