// Specs from files: a whole section, every leaf of it, from a name or an inline map.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/leaves/leaves.h"
#include "sweep/language/node.h"
#include "sweep/language/reading.h"

namespace sweep {

// Every leaf of the section: its defaults, then what the file says, then what convention completes.
// The name is one of the section's library, or a path to a .yaml file from the file that says it.
std::vector<Edit> named_spec(const engine::Section& section, const Node& name,
                             std::string_view said, Reading& reading);

// The same for the value of `from:`, which may also be the spec itself, as a map.
std::vector<Edit> from_spec(const engine::Section& section, const Node& from, std::string_view said,
                            Reading& reading);

// The same for a HuggingFace config.json.
std::vector<Edit> hf_spec(const engine::Section& section, const Node& path, std::string_view said,
                          Reading& reading);

// What the file of a model says of the formats it is published in: a map of fields of `quant`, unless it is wrong.
Node formats_of_file(const Node& model);

// The config.json that a path means, which may name its folder.
std::filesystem::path hf_config_file(const Node& path);

// A path as the file that says it means it.
std::filesystem::path relative_to(const engine::Location& said_in, const std::string& path);

}  // namespace sweep
