// Finds named specs: `h100-sxm` of "devices" is devices/h100-sxm.yaml under one of the folders.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sweep {

// Folders beside the libraries whose files are whole sweeps: nothing names them from another spec.
constexpr std::array<std::string_view, 2> kSweepFolders{"suite", "sweeps"};

class Library {
 public:
  Library() = default;
  // Folders like specs/, the first that has a name wins.
  explicit Library(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}

  // The folders of $LLMSWEEP_SPECS (separated by ':'), then `project_specs`.
  static Library standard(const std::filesystem::path& project_specs);

  // The same library with one more folder asked first; a folder that is not there changes nothing.
  Library with(const std::filesystem::path& folder) const;

  // The file of a name; with `other_than` the first one that is another file.
  std::optional<std::filesystem::path> find(std::string_view library, std::string_view name,
                                            const std::filesystem::path& other_than = {}) const;
  // Every name of a library ("devices"), sorted, each once.
  std::vector<std::string> names(std::string_view library) const;
  // Every library that has a name: "devices", "models", ...; sorted.
  std::vector<std::string> libraries() const;
  // The same and the folders of whole sweeps, "suite" and "sweeps".
  std::vector<std::string> libraries_and_sweeps() const;

  const std::vector<std::filesystem::path>& folders() const { return folders_; }

 private:
  std::vector<std::filesystem::path> folders_;
};

}  // namespace sweep
