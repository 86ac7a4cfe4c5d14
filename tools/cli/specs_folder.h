// Where the shipped devices, models and loads are. The one file that knows paths of the build.
#pragma once

#include <filesystem>

namespace tools {

std::filesystem::path specs_folder();

// Parameters of single engines' kernels, by which rows of tables are predicted.
std::filesystem::path engine_rows_folder();

}  // namespace tools
