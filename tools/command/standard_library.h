// Where named devices, models and loads are looked for.
#pragma once

#include <filesystem>

#include "sweep/language/library.h"

namespace tools {

// The spec library that came with this binary, with the user's own folders before it.
sweep::Library standard_library();

// Parameters of single engines' kernels, by which rows of tables are predicted.
std::filesystem::path engine_rows_folder();

}  // namespace tools
