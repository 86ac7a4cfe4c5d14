#include "sweep/input/csv.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sweep {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  CsvLines lines(text);
  std::vector<std::string> all;
  for (std::string_view line; lines.next(line);) all.emplace_back(line);
  return all;
}

struct Cell {
  std::string text;
  int column;
  bool operator==(const Cell&) const = default;
};

// Read to the end before anything is copied: cells of one line last together.
std::vector<Cell> cells_of(std::string_view line) {
  std::string scratch;
  CsvCells cells(line, scratch);
  std::vector<std::pair<std::string_view, int>> views;
  for (std::string_view cell; cells.next(cell);) views.emplace_back(cell, cells.column());
  std::vector<Cell> all;
  for (const auto& [text, column] : views) all.push_back({std::string(text), column});
  return all;
}

using Texts = std::vector<std::string>;

TEST(Csv, LinesEndAsOnAnyMachine) {
  EXPECT_EQ(lines_of("a\nb\r\n\nc"), (Texts{"a", "b", "", "c"}));
  EXPECT_EQ(lines_of("a\n"), Texts{"a"});
  EXPECT_EQ(lines_of(""), Texts{});
  EXPECT_EQ(lines_of("\xef\xbb\xbfname\n1\n"), (Texts{"name", "1"}));
}

TEST(Csv, CellsLieBetweenCommas) {
  EXPECT_EQ(cells_of("a,,bc,"), (std::vector<Cell>{{"a", 1}, {"", 3}, {"bc", 4}, {"", 7}}));
  EXPECT_EQ(cells_of(""), (std::vector<Cell>{{"", 1}}));
}

TEST(Csv, QuotesHoldCommasAndQuotes) {
  EXPECT_EQ(cells_of(R"("a,b",c,"say ""x""",d)"),
            (std::vector<Cell>{{"a,b", 1}, {"c", 7}, {R"(say "x")", 9}, {"d", 21}}));
  // A quote inside a plain cell is a letter; text after a closing quote stays with the cell.
  EXPECT_EQ(cells_of(R"(a"b,"c"d,e)"), (std::vector<Cell>{{R"(a"b)", 1}, {"cd", 5}, {"e", 10}}));
  EXPECT_EQ(cells_of(R"("open,1)"), (std::vector<Cell>{{"open,1", 1}}));
}

}  // namespace
}  // namespace sweep
