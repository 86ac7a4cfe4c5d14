#include "sweep/workload/trace_file.h"

#include <zlib.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "sweep/workload/trace_rows.h"

namespace sweep {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

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

// "2023-11-16 18:15:46.6805900" as seconds; days are counted from a fixed one.
bool read_timestamp(std::string_view text, double& seconds) {
  const auto number = [&text](std::size_t at, std::size_t count, double& value) {
    return text.size() >= at + count && read_number(text.substr(at, count), value);
  };
  double year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const bool shaped =
      text.size() >= 19 && text[4] == '-' && text[7] == '-' && text[13] == ':' && text[16] == ':';
  if (!shaped || !number(0, 4, year) || !number(5, 2, month) || !number(8, 2, day) ||
      !number(11, 2, hour) || !number(14, 2, minute) || !read_number(text.substr(17), second)) {
    return false;
  }
  // Days of the civil calendar (H. Hinnant's algorithm).
  const std::int64_t y = std::int64_t(year) - (month <= 2 ? 1 : 0);
  const std::int64_t era = y / 400, of_era = y - era * 400;
  const std::int64_t m = std::int64_t(month);
  const std::int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + std::int64_t(day) - 1;
  const std::int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
  seconds = double(days) * 86400 + hour * 3600 + minute * 60 + second;
  return true;
}

struct Fields {
  TraceRowText row;
  double first_timestamp = -1;
};

// Puts one cell where it belongs; false where it is no such value.
bool read_cell(const TraceColumn& column, std::string_view text, Fields& fields,
               TraceBuilder& builder) {
  double value = 0;
  switch (column.field) {
    case TraceField::none:
      return true;
    case TraceField::arrival:
      if (column.timestamp) {
        if (!read_timestamp(text, value)) return false;
        if (fields.first_timestamp < 0) fields.first_timestamp = value;
        fields.row.arrival = value - fields.first_timestamp;
        return true;
      }
      if (!read_number(text, value)) return false;
      fields.row.arrival = value * column.scale;
      return true;
    case TraceField::prompt:
      return read_number(text, fields.row.prompt);
    case TraceField::output:
      return read_number(text, fields.row.output);
    case TraceField::session:
      return read_number(text, fields.row.session);
    case TraceField::priority:
      return read_number(text, fields.row.priority);
    case TraceField::tenant:
      fields.row.tenant = text;
      return true;
    case TraceField::model:
      fields.row.model = text;
      return true;
    case TraceField::hashes:
      break;
  }
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find_first_of("; ", start), text.size());
    std::uint64_t id = 0;
    const auto read = std::from_chars(text.data() + start, text.data() + end, id);
    if (end > start && (read.ec != std::errc{} || read.ptr != text.data() + end)) return false;
    if (end > start) builder.add_hash(id);
    start = end + 1;
  }
  return true;
}

TraceResult parse_csv(std::string_view text, const std::string& name, const TraceOptions& options) {
  TraceBuilder builder(name);
  std::vector<TraceColumn> columns;
  std::vector<std::string> names;
  Fields fields;
  int line = 0;
  for (std::size_t start = 0; start < text.size() && !builder.full();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view whole = text.substr(start, end - start);
    start = end + 1;
    ++line;
    if (trimmed(whole).empty()) continue;
    const bool header = columns.empty();
    TracePlaces places{};
    std::size_t index = 0;
    bool good = true;
    for (std::size_t at = 0; at <= whole.size(); ++index) {
      const std::size_t comma = std::min(whole.find(',', at), whole.size());
      const std::string_view cell = trimmed(whole.substr(at, comma - at));
      if (header) {
        columns.push_back(trace_column(cell));
        names.emplace_back(cell);
      } else if (index < columns.size()) {
        places[std::size_t(columns[index].field)] = int(at) + 1;
        if (!read_cell(columns[index], cell, fields, builder)) {
          builder.mistake(line, int(at) + 1,
                          "'" + std::string(cell) + "' is not a value of " + names[index]);
          good = false;
        }
      }
      at = comma + 1;
    }
    if (header) {
      builder.columns(columns, line);
    } else if (index < columns.size()) {
      builder.mistake(line, int(whole.size()) + 1,
                      "the row has " + std::to_string(index) + " of " +
                          std::to_string(columns.size()) + " columns");
    } else if (good) {
      builder.add_row(fields.row, line, places);
    }
  }
  return builder.finish(text, options.block_tokens);
}

TraceResult parse_json_lines(std::string_view text, const std::string& name,
                             const TraceOptions& options) {
  TraceBuilder builder(name);
  bool first = true;
  int line = 0;
  for (std::size_t start = 0; start < text.size() && !builder.full();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view whole = text.substr(start, end - start);
    start = end + 1;
    ++line;
    if (trimmed(whole).empty()) continue;
    const auto json = nlohmann::json::parse(whole, nullptr, false);
    if (json.is_discarded() || !json.is_object()) {
      builder.mistake(line, 1, "the line is not a JSON object");
      continue;
    }
    if (first) {
      std::vector<TraceColumn> columns;
      for (const auto& [key, value] : json.items()) columns.push_back(trace_column(key));
      builder.columns(columns, line);
      first = false;
    }
    TraceRowText row;
    std::string tenant, model;
    bool good = true;
    std::size_t known = 0;
    for (const auto& [key, value] : json.items()) {
      const TraceColumn column = trace_column(key);
      if (column.field == TraceField::none) continue;
      ++known;
      if (column.field == TraceField::hashes) {
        good = value.is_array() && good;
        for (const auto& id : value) {
          good = id.is_number_integer() && good;
          builder.add_hash(id.is_number_integer() ? id.get<std::uint64_t>() : 0);
        }
      } else if (column.field == TraceField::tenant) {
        tenant = value.is_string() ? value.get<std::string>() : value.dump();
        row.tenant = tenant;
      } else if (column.field == TraceField::model) {
        model = value.is_string() ? value.get<std::string>() : value.dump();
        row.model = model;
      } else if (!value.is_number()) {
        good = false;
      } else {
        const double number = value.get<double>();
        if (column.field == TraceField::arrival) row.arrival = number * column.scale;
        if (column.field == TraceField::prompt) row.prompt = number;
        if (column.field == TraceField::output) row.output = number;
        if (column.field == TraceField::session) row.session = number;
        if (column.field == TraceField::priority) row.priority = number;
      }
      if (!good) {
        builder.mistake(line, 1, "'" + value.dump() + "' is not a value of " + key);
        break;
      }
    }
    TracePlaces places;
    places.fill(1);
    if (good) builder.add_row(row, line, places);
  }
  return builder.finish(text, options.block_tokens);
}

}  // namespace

TraceResult parse_trace(std::string_view text, const std::string& name,
                        const TraceOptions& options) {
  std::string_view plain = name;
  if (ends_with(plain, ".gz")) plain.remove_suffix(3);
  if (ends_with(plain, ".jsonl")) return parse_json_lines(text, name, options);
  if (ends_with(plain, ".csv")) return parse_csv(text, name, options);
  return engine::Mistake{{name, 0, 0},
                         "the name does not say what the trace is",
                         "name it .csv, .csv.gz, .jsonl or .jsonl.gz"};
}

TraceResult read_trace(const std::string& path, const TraceOptions& options) {
  // zlib reads plain files too.
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    return engine::Mistake{{path, 0, 0}, "the trace cannot be opened", "check load.trace"};
  }
  gzbuffer(file, 1 << 18);
  std::string text;
  std::vector<char> piece(1 << 20);
  int count = 0;
  while ((count = gzread(file, piece.data(), unsigned(piece.size()))) > 0) {
    text.append(piece.data(), std::size_t(count));
  }
  int error = Z_OK;
  gzerror(file, &error);
  const int closed = gzclose(file);
  if (count < 0 || error != Z_OK || closed != Z_OK) {
    return engine::Mistake{
        {path, 0, 0},
        "the trace is damaged or cut off after " + std::to_string(text.size()) + " bytes of text",
        "fetch the file again"};
  }
  return parse_trace(text, path, options);
}

}  // namespace sweep
