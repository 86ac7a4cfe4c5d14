// Rows of a small table of measurements, by the names in its first line.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/input/csv.h"
#include "tests/support/calibrations.h"
#include "tests/support/paths.h"

namespace toys {

using CsvRow = std::map<std::string, std::string, std::less<>>;

// `file` is below specs/.
inline std::vector<CsvRow> csv_rows(const std::string& file) {
  const std::string text = file_text(paths::specs(file));
  sweep::CsvLines lines(text);
  std::vector<std::string> names;
  std::vector<CsvRow> rows;
  std::string_view line;
  while (lines.next(line)) {
    std::string scratch;
    sweep::CsvCells cells(line, scratch);
    std::string_view cell;
    CsvRow row;
    for (std::size_t at = 0; cells.next(cell); ++at) {
      if (lines.number() == 1) {
        names.emplace_back(cell);
      } else {
        row[names.at(at)] = std::string(cell);
      }
    }
    if (!row.empty()) rows.push_back(row);
  }
  return rows;
}

}  // namespace toys
