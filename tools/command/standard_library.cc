#include "tools/command/standard_library.h"

#include <filesystem>
#include <system_error>

namespace tools {
namespace {

// An installed command looks beside itself, one in a build tree in the sources.
std::filesystem::path specs_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const auto installed = self.parent_path() / LLMSWEEP_INSTALLED_SPECS;
    if (std::filesystem::is_directory(installed, error)) return installed.lexically_normal();
  }
  return LLMSWEEP_SPECS_DIR;
}

}  // namespace

sweep::Library standard_library() { return sweep::Library::standard(specs_folder()); }

std::filesystem::path engine_rows_folder() {
  return specs_folder().parent_path() / "tools" / "calibrate" / "engine_rows";
}

}  // namespace tools
