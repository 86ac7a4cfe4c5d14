// Comma-separated values: the lines of a text and the cells of a line. All such files are read here.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sweep {

// The lines of a text, without their ends ("\n" or "\r\n") and without the mark that some editors put
// before the first letter.
class CsvLines {
 public:
  explicit CsvLines(std::string_view text);

  // False: there are no more.
  bool next(std::string_view& line);
  // Number of the line that `next` gave last; the first is 1.
  int number() const { return number_; }

 private:
  std::string_view rest_;
  int number_ = 0;
};

// The cells of one line, which outlives them. A quoted cell may hold commas, and a doubled quote in it
// stands for one.
class CsvCells {
 public:
  // `scratch` keeps the cells whose text is not in the line as it is; they last until it is used again.
  CsvCells(std::string_view line, std::string& scratch);

  // False: there are no more. An empty line has one empty cell.
  bool next(std::string_view& cell);
  // Where the cell that `next` gave last begins in the line; the first letter is 1.
  int column() const { return int(start_) + 1; }

 private:
  std::string_view quoted();

  std::string_view line_;
  std::string& scratch_;
  std::size_t start_ = 0;
  std::size_t at_ = 0;  // one past the end of the line: no more cells
};

}  // namespace sweep
