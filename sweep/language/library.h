// Finds named specs: `h100-sxm` of "devices" is devices/h100-sxm.yaml under one of the folders.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "sweep/language/node.h"

namespace sweep {

// Folders beside the libraries whose files are whole sweeps: nothing names them from another spec.
constexpr std::array<std::string_view, 2> kSweepFolders{"suite", "sweeps"};

// A table of designs as a map of columns, each a list of its cells, with their places in the file. Formats of tables are for those
// who hide their packages; a library says who reads them.
using TableReader = std::function<engine::Result<Node>(const std::filesystem::path&)>;

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

  void read_tables_with(TableReader reader) { table_reader_ = std::move(reader); }
  const TableReader& table_reader() const { return table_reader_; }

 private:
  std::vector<std::filesystem::path> folders_;
  TableReader table_reader_;
};

}  // namespace sweep
