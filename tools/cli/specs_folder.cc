#include "tools/cli/specs_folder.h"

#include <system_error>

namespace tools {

std::filesystem::path specs_folder() {
  // An installed command looks beside itself, one in a build tree in the sources.
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const auto installed = self.parent_path() / LLMSWEEP_INSTALLED_SPECS;
    if (std::filesystem::is_directory(installed, error)) return installed.lexically_normal();
  }
  return LLMSWEEP_SPECS_DIR;
}

std::filesystem::path engine_rows_folder() {
  return specs_folder().parent_path() / "tools" / "calibrate" / "engine_rows";
}

}  // namespace tools
