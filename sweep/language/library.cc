#include "sweep/language/library.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <system_error>

#include "engine/leaves/leaves.h"

namespace sweep {
namespace fs = std::filesystem;

Library Library::standard(const fs::path& project_specs) {
  std::vector<fs::path> folders;
  if (const char* extra = std::getenv("LLMSWEEP_SPECS")) {
    std::string_view rest = extra;
    while (!rest.empty()) {
      const std::size_t colon = rest.find(':');
      if (colon != 0) folders.emplace_back(rest.substr(0, colon));
      rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
    }
  }
  folders.push_back(project_specs);
  return Library(std::move(folders));
}

Library Library::with(const fs::path& folder) const {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return *this;
  Library more = *this;
  more.folders_.insert(more.folders_.begin(), folder);
  return more;
}

std::optional<fs::path> Library::find(std::string_view library, std::string_view name,
                                      const fs::path& other_than) const {
  // A name is one file name: no way out of the folder.
  if (name.empty() || name.find('/') != std::string_view::npos) return std::nullopt;
  for (const fs::path& folder : folders_) {
    const fs::path file = folder / library / (std::string(name) + ".yaml");
    std::error_code error;
    if (!other_than.empty() && fs::equivalent(file, other_than, error)) continue;
    if (fs::is_regular_file(file, error)) return file;
  }
  return std::nullopt;
}

std::vector<std::string> Library::names(std::string_view library) const {
  std::set<std::string> names;
  for (const fs::path& folder : folders_) {
    std::error_code error;
    for (fs::directory_iterator it(folder / library, error), end; !error && it != end;
         it.increment(error)) {
      if (it->path().extension() == ".yaml") names.insert(it->path().stem().string());
    }
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> Library::libraries() const {
  std::set<std::string> found;
  for (const engine::Section& section : engine::leaf_table().sections) {
    if (!section.library.empty() && !names(section.library).empty()) {
      found.insert(std::string(section.library));
    }
  }
  return {found.begin(), found.end()};
}

std::vector<std::string> Library::libraries_and_sweeps() const {
  std::vector<std::string> all = libraries();
  for (const std::string_view folder : kSweepFolders) {
    if (!names(folder).empty()) all.emplace_back(folder);
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace sweep
