#include "results/replaced_folder.h"

#include <sys/stat.h>

namespace results {

FolderState state_of(const std::filesystem::path& folder) {
  struct stat found {};
  if (::stat(folder.c_str(), &found) != 0) return {};
  return {found.st_dev, found.st_ino, found.st_ctim.tv_sec * 1'000'000'000 + found.st_ctim.tv_nsec};
}

}  // namespace results
