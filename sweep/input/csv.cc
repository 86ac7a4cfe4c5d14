#include "sweep/input/csv.h"

#include <algorithm>

namespace sweep {

CsvLines::CsvLines(std::string_view text) : rest_(text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
}

bool CsvLines::next(std::string_view& line) {
  if (rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++number_;
  return true;
}

CsvCells::CsvCells(std::string_view line, std::string& scratch) : line_(line), scratch_(scratch) {
  scratch_.clear();
}

bool CsvCells::next(std::string_view& cell) {
  if (at_ > line_.size()) return false;
  start_ = at_;
  if (at_ < line_.size() && line_[at_] == '"') {
    cell = quoted();
  } else {
    at_ = std::min(line_.find(',', at_), line_.size());
    cell = line_.substr(start_, at_ - start_);
  }
  ++at_;
  return true;
}

// What follows the closing quote, up to the comma, belongs to the cell. A quote that is never closed ends
// with the line.
std::string_view CsvCells::quoted() {
  // Cells of one line are together no longer than the line, so what was handed out stays where it is.
  if (scratch_.empty()) scratch_.reserve(line_.size());
  const std::size_t first = scratch_.size();
  bool inside = true;
  for (++at_; at_ < line_.size(); ++at_) {
    const char letter = line_[at_];
    if (letter != '"') {
      if (letter == ',' && !inside) break;
      scratch_ += letter;
    } else if (inside && at_ + 1 < line_.size() && line_[at_ + 1] == '"') {
      scratch_ += letter;
      ++at_;
    } else {
      inside = !inside;
    }
  }
  return std::string_view(scratch_).substr(first);
}

}  // namespace sweep
