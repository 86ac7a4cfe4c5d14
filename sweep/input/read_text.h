// The text of a file, within the limits, or what is wrong with it.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/result.h"
#include "sweep/input/limits.h"

namespace sweep {

// A file that people write: a spec, a configuration, a calibration.
engine::Result<std::string> read_spec_text(const std::filesystem::path& file,
                                           const InputLimits& limits = input_limits());

// A file that programs write, plain or gzipped, whatever bytes are in it.
engine::Result<std::string> read_table_bytes(const std::filesystem::path& file,
                                             const InputLimits& limits = input_limits());

// A text that programs write, plain or gzipped: a trace, a table.
engine::Result<std::string> read_table_text(const std::filesystem::path& file,
                                            const InputLimits& limits = input_limits());

}  // namespace sweep
