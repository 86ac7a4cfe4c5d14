// What GenAI-Perf and its successor AIPerf measured: profile_export_genai_perf.json, profile_export_aiperf.json.
#pragma once

#include <filesystem>

#include "engine/base/result.h"
#include "tools/import/load_result.h"

namespace tools {

// Means and percentiles; figures that it does not measure stay null.
engine::Result<LoadResult> read_genai_perf_result(const std::filesystem::path& file);

}  // namespace tools
