// What `vllm bench serve --save-result` and SGLang's `bench_serving --output-file` measured. SGLang's load generator began as
// vLLM's: most of what it writes has the same names.
#pragma once

#include <filesystem>

#include "engine/base/result.h"
#include "tools/import/load_result.h"

namespace tools {

// Figures that they do not measure stay null.
engine::Result<LoadResult> read_vllm_result(const std::filesystem::path& file);
engine::Result<LoadResult> read_sglang_result(const std::filesystem::path& file);

}  // namespace tools
