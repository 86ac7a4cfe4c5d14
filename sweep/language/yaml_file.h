// Reads a YAML file into nodes that remember their line and column. The only room of yaml-cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "sweep/input/limits.h"
#include "sweep/language/node.h"

namespace sweep {

// Every duplicate key is a mistake; anchors, aliases and `<<` are resolved. An empty file is a null. The
// text is UTF-8, as files are once they are read.
engine::Result<Node> read_yaml(std::string_view text, const std::string& file_name,
                               const InputLimits& limits = input_limits());
engine::Result<Node> read_yaml_file(const std::filesystem::path& file,
                                    const InputLimits& limits = input_limits());

// The whole file, or the mistake of not being readable, with a hint at a file of a similar name.
engine::Result<std::string> read_text_file(const std::filesystem::path& file,
                                           const InputLimits& limits = input_limits());

}  // namespace sweep
