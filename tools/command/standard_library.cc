#include "tools/command/standard_library.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "results/text_table.h"

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

sweep::Node scalar(std::string_view text, const engine::Location& where) {
  return {.kind = sweep::Node::Kind::scalar, .text = std::string(text), .where = where};
}

// Data frames write their row numbers, too: in CSV without a name, in Parquet under this one.
bool is_row_number(const std::string& column) {
  return column.empty() || column == "__index_level_0__";
}

engine::Result<sweep::Node> design_columns(const std::filesystem::path& file) {
  const auto table = results::read_table(file);
  if (!table) return table.mistakes();
  sweep::Node columns{.kind = sweep::Node::Kind::map, .where = {.file = table->file}};
  for (std::size_t i = 0; i < table->columns.size(); ++i) {
    const results::TextColumn& column = table->columns[i];
    if (is_row_number(column.name())) continue;
    sweep::Node cells{.kind = sweep::Node::Kind::sequence, .where = table->header(i)};
    cells.items.reserve(column.size());
    for (std::size_t row = 0; row < column.size(); ++row) {
      cells.items.push_back(scalar(column[row], table->where(row, i)));
    }
    columns.entries.push_back({scalar(column.name(), table->header(i)), std::move(cells)});
  }
  return columns;
}

}  // namespace

sweep::Library standard_library() {
  sweep::Library library = sweep::Library::standard(specs_folder());
  library.read_tables_with(design_columns);
  return library;
}

std::filesystem::path engine_rows_folder() {
  return specs_folder().parent_path() / "tools" / "calibrate" / "engine_rows";
}

}  // namespace tools
