// Which calls of operators has a trace of the PyTorch profiler (record_shapes=True), of which shapes, and how long did
// their kernels take?
#pragma once

#include <filesystem>

#include "engine/base/result.h"
#include "tools/import/traced_calls.h"

namespace tools {

engine::Result<TracedKernels> read_profiler_trace(const std::filesystem::path& file);

}  // namespace tools
