// HuggingFace config.json to a model.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/model_spec.h"
#include "sweep/language/hf_quantization.h"

namespace sweep {

// What a config.json says: the model, and the number formats it is published in.
struct HfModel {
  engine::ModelSpec model;
  HfQuantization formats;
};

// The model takes its name from the file or, for a plain config.json, from its folder, and its repository from where a download lies.
engine::Result<HfModel> read_hf_config(const std::filesystem::path& file);
engine::Result<HfModel> parse_hf_config(std::string_view text, const std::string& file_name);

// Architectures that can be read, sorted.
std::vector<std::string> hf_architectures();

}  // namespace sweep
