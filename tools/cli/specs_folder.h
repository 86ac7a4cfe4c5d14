// Where the shipped devices, models and loads are. The one file that knows paths of the build.
#pragma once

#include <filesystem>

namespace tools {

std::filesystem::path specs_folder();

}  // namespace tools
