// Traces as comma-separated values: a line of names, then a row a line.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sweep/input/csv.h"
#include "sweep/workload/trace_rows.h"

namespace sweep {
namespace {

bool read_number(std::string_view text, double& value) {
  // Whole numbers, which most columns hold, by hand: several times faster than from_chars.
  if (!text.empty() && text.size() <= 15) {
    std::int64_t whole = 0;
    bool digits = true;
    for (const char c : text) {
      digits = digits && c >= '0' && c <= '9';
      whole = whole * 10 + (c - '0');
    }
    if (digits) {
      value = double(whole);
      return true;
    }
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

struct Timestamp {
  std::int64_t day = 0;  // of the civil calendar, counted from a fixed one
  double second = 0;     // of the day
};

// Takes the time zone off the end of a timestamp, "Z" or "+05:30", as seconds ahead of UTC.
bool take_zone(std::string_view& text, double& ahead) {
  const std::size_t start = text.find_first_of("Z+-", std::min<std::size_t>(text.size(), 19));
  ahead = 0;
  if (start == std::string_view::npos) return true;
  const std::string_view zone = text.substr(start);
  text = trimmed(text.substr(0, start));
  if (zone == "Z") return true;
  double hours = 0, minutes = 0;
  const bool shaped = zone.size() == 3 || (zone.size() == 6 && zone[3] == ':');
  if (!shaped || !read_number(zone.substr(1, 2), hours) || hours > 14 ||
      (zone.size() == 6 && (!read_number(zone.substr(4), minutes) || minutes > 59))) {
    return false;
  }
  ahead = (zone[0] == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
  return true;
}

// "2023-11-16 18:15:46.6805900", "2024-05-10 00:00:00.009930+00:00"
bool read_timestamp(std::string_view text, Timestamp& timestamp) {
  double ahead = 0;
  if (!take_zone(text, ahead)) return false;
  double year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const auto number = [&text](std::size_t at, double& value, double low, double high) {
    return read_number(text.substr(at, at == 0 ? 4 : 2), value) && value >= low && value <= high;
  };
  const bool shaped =
      text.size() >= 19 && text[4] == '-' && text[7] == '-' && text[13] == ':' && text[16] == ':';
  if (!shaped || !number(0, year, 1, 9999) || !number(5, month, 1, 12) || !number(8, day, 1, 31) ||
      !number(11, hour, 0, 23) || !number(14, minute, 0, 59) ||
      !read_number(text.substr(17), second) || !(second >= 0 && second < 61)) {
    return false;
  }
  // Days of the civil calendar (H. Hinnant's algorithm).
  const std::int64_t y = std::int64_t(year) - (month <= 2 ? 1 : 0);
  const std::int64_t era = y / 400, of_era = y - era * 400;
  const std::int64_t m = std::int64_t(month);
  const std::int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + std::int64_t(day) - 1;
  timestamp.day = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
  timestamp.second = hour * 3600 + minute * 60 + second - ahead;
  return true;
}

// Numbers separated by spaces or semicolons.
bool read_hashes(std::string_view text, std::vector<std::uint64_t>& hashes) {
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find_first_of("; ", start), text.size());
    if (end > start) {
      std::uint64_t id = 0;
      const auto read = std::from_chars(text.data() + start, text.data() + end, id);
      if (read.ec != std::errc{} || read.ptr != text.data() + end) return false;
      hashes.push_back(id);
    }
    start = end + 1;
  }
  return true;
}

class CsvTrace {
 public:
  CsvTrace(const std::string& name, std::string_view text) : text_(text), builder_(name, text) {}

  engine::Result<std::shared_ptr<const engine::Trace>> read() {
    bool readable = true;
    CsvLines lines(text_);
    std::string_view line;
    while (readable && lines.next(line)) {
      line_ = lines.number();
      if (!builder_.within(line, line_) || trimmed(line).empty()) continue;
      if (columns_.empty()) {
        readable = header(line);
      } else {
        row(line);
      }
    }
    return builder_.finish();
  }

 private:
  bool header(std::string_view line) {
    if (trimmed(line).find('\r') != std::string_view::npos) {
      builder_.mistake(line_, int(line.find('\r')) + 1, "lines end in a carriage return alone",
                       "end them in a line feed, with or without a carriage return before it");
      return false;
    }
    std::vector<TraceBuilder::Name> names;
    CsvCells cells(line, scratch_);
    for (std::string_view cell; cells.next(cell);) {
      cell = trimmed(cell);
      names.push_back({std::string(cell), cells.column()});
      columns_.push_back(trace_column(cell));
    }
    const bool readable = builder_.columns(names, line_);
    for (TraceBuilder::Name& name : names) names_.push_back(std::move(name.text));
    return readable;
  }

  void row(std::string_view line) {
    row_.clear();
    bool good = true;
    std::size_t count = 0;
    CsvCells cells(line, scratch_);
    for (std::string_view cell; cells.next(cell); ++count) {
      if (count >= columns_.size()) continue;
      cell = trimmed(cell);
      row_.places[std::size_t(columns_[count].field)] = cells.column();
      if (read_cell(columns_[count], cell)) continue;
      builder_.mistake(line_, cells.column(),
                       fmt::format("'{}' is not a value of {}", cell, names_[count]));
      good = false;
    }
    if (count != columns_.size()) {
      builder_.mistake(line_, int(line.size()) + 1,
                       fmt::format("the row has {} cells, the header {}", count, columns_.size()));
    } else if (good) {
      builder_.add_row(row_, line_, line);
    }
  }

  // Puts one cell where it belongs; false where it is no such value.
  bool read_cell(const TraceColumn& column, std::string_view text) {
    switch (column.field) {
      case TraceField::none:
        return true;
      case TraceField::tenant:
        row_.tenant = text;
        return true;
      case TraceField::model:
        row_.model = text;
        return true;
      case TraceField::id:
        row_.id = text;
        return true;
      case TraceField::hashes:
        return read_hashes(text, row_.hashes);
      case TraceField::arrival:
        if (column.timestamp) return read_date(text);
        break;
      case TraceField::prompt:
      case TraceField::output:
      case TraceField::session:
      case TraceField::priority:
        break;
    }
    double value = 0;
    if (!read_number(text, value)) return false;
    row_.set(column, value);
    return true;
  }

  // Time starts with the first row.
  bool read_date(std::string_view text) {
    Timestamp timestamp;
    if (!read_timestamp(text, timestamp)) return false;
    if (!started_) first_ = timestamp;
    started_ = true;
    row_.arrival = double(timestamp.day - first_.day) * 86400 + (timestamp.second - first_.second);
    return true;
  }

  std::string_view text_;
  TraceBuilder builder_;
  int line_ = 0;
  std::vector<TraceColumn> columns_;
  std::vector<std::string> names_;
  TraceRowText row_;
  std::string scratch_;
  bool started_ = false;
  Timestamp first_;
};

}  // namespace

engine::Result<std::shared_ptr<const engine::Trace>> parse_csv_trace(std::string_view text,
                                                                     const std::string& name) {
  return CsvTrace(name, text).read();
}

}  // namespace sweep
