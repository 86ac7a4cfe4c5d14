// Names of models on a hub ("meta-llama/Llama-3.1-70B"): nothing here reaches the network, so what can be
// done is to say what to download and where to put it, and to know a download by where it lies.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace sweep {

// A hint for a model that was written as a name of a hub; nothing where it does not look like one.
// `models` are the names of the library.
std::optional<std::string> hub_name_hint(const std::string& written,
                                         const engine::Location& said_in,
                                         const std::vector<std::string>& models);

// The repository of a downloaded file, where its folders say it: "owner--model/config.json", or the cache of huggingface_hub,
// "models--owner--model/snapshots/COMMIT/config.json". Elsewhere empty: a file's own `_name_or_path` may be what it was tuned from.
std::string hub_name_of_file(const std::filesystem::path& file);

}  // namespace sweep
