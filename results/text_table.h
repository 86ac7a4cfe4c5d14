// Tables that others wrote, as columns of text: CSV, gzipped CSV and Parquet look alike to a tool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace results {

// Cells one after another in one buffer: a million short cells are no million allocations.
class TextColumn {
 public:
  explicit TextColumn(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t row) const {
    const std::uint64_t start = row == 0 ? 0 : ends_[row - 1];
    return std::string_view(text_).substr(start, ends_[row] - start);
  }
  void append(std::string_view cell) {
    text_ += cell;
    ends_.push_back(text_.size());
  }
  void reserve(std::size_t rows) { ends_.reserve(rows); }

 private:
  std::string name_;
  std::string text_;
  std::vector<std::uint64_t> ends_;
};

struct TextTable {
  std::string file;
  std::vector<TextColumn> columns;
  std::vector<std::uint32_t> lines;  // of each row in a CSV file; none for Parquet

  std::size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
  std::optional<std::size_t> find(std::string_view name) const;
  // Where a cell is: line and column of a CSV file, row and column number of a Parquet file.
  engine::Location where(std::size_t row, std::size_t column) const;
  // Where a column's name is.
  engine::Location header(std::size_t column) const;
};

// Reads by the end of the name: .parquet, .gz, else CSV. Everything wrong with the file's shape is a
// mistake; an empty cell is a null.
engine::Result<TextTable> read_table(const std::filesystem::path& file);
engine::Result<TextTable> parse_csv(std::string_view text, const std::string& file_name);

// Writes .parquet, .csv or .csv.gz, whole or not at all. In Parquet a column is integers or numbers
// where all its cells are, else text; an empty cell is a null.
void write_table(const std::filesystem::path& file, const TextTable& table);

}  // namespace results
