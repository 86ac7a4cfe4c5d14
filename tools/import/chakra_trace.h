// Which calls of operators has a Chakra execution trace, of which shapes, and how long did their kernels take?
#pragma once

#include <filesystem>

#include "engine/base/result.h"
#include "tools/import/traced_calls.h"

namespace tools {

engine::Result<TracedKernels> read_chakra_trace(const std::filesystem::path& file);

}  // namespace tools
