// One row of a table of text, by the names of its columns.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "results/text_table.h"

namespace tools {

// A column that is not there reads as empty cells; an empty cell is zero.
class TableRow {
 public:
  TableRow(const results::TextTable& table, std::size_t row) : table_(table), row_(row) {}

  std::string_view text(std::string_view column) const {
    const auto found = table_.find(column);
    return found ? table_.columns[*found][row_] : std::string_view{};
  }
  double number(std::string_view column) const {
    const std::string_view cell = text(column);
    double value = 0;
    std::from_chars(cell.data(), cell.data() + cell.size(), value);
    return value;
  }
  std::int64_t count(std::string_view column) const { return std::int64_t(number(column)); }

 private:
  const results::TextTable& table_;
  std::size_t row_;
};

}  // namespace tools
