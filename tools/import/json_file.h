// A file of JSON that another program wrote, or where in it the damage is.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/result.h"

namespace tools {

// Plain or gzipped.
engine::Result<nlohmann::json> read_json_file(const std::filesystem::path& file);

}  // namespace tools
