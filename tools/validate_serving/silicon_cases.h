// The runs of silicon_e2e: closed loops on H100 with three engines, mean times of each.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/library.h"
#include "tools/validate_serving/served_case.h"

namespace tools {

// Every row of the table, those that cannot be compared with their reason.
engine::Result<std::vector<ServedCase>> silicon_cases(const std::filesystem::path& table,
                                                      const sweep::Library& library);

}  // namespace tools
