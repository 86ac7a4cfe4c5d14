#include "results/text_table.h"

#include <zlib.h>

#include <array>
#include <system_error>

#include "results/durable_file.h"
#include "results/failure.h"
#include "results/text_parquet.h"
#include "sweep/input/csv.h"
#include "sweep/input/limits.h"
#include "sweep/input/mistake_list.h"
#include "sweep/input/read_text.h"

namespace results {
namespace {

namespace fs = std::filesystem;

bool ends_with(const fs::path& file, std::string_view ending) {
  return file.string().ends_with(ending);
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  // 16 + 15: a gzip header and the largest window.
  if (deflateInit2(&stream, 6, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Failure("zlib cannot be started");
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = uInt(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& file) : lines_(text) { table_.file = file; }

  engine::Result<TextTable> parse() {
    std::string_view line;
    if (!lines_.next(line) || line.empty()) {
      return engine::Mistake{
          {table_.file, 1, 1}, "the table is empty", "the first line names the columns"};
    }
    if (!within(line)) return std::move(mistakes_).finish();
    header(line);
    while (lines_.next(line)) {
      if (!line.empty() && within(line)) row(line);
    }
    if (!mistakes_.empty()) return std::move(mistakes_).finish();
    return std::move(table_);
  }

 private:
  bool within(std::string_view line) {
    if (std::int64_t(line.size()) <= line_bytes_) return true;
    mistakes_.add(sweep::beyond_limit({table_.file, lines_.number(), 1},
                                      "a line of more than " + sweep::limit_text(line_bytes_),
                                      "line_bytes"));
    return false;
  }

  void header(std::string_view line) {
    sweep::CsvCells cells(line, scratch_);
    std::string_view name;
    while (cells.next(name)) {
      const auto column = int(table_.columns.size()) + 1;
      // The index of a data frame has no name, and stands first.
      if (name.empty() && column > 1) {
        add_mistake(1, "column " + std::to_string(column) + " has no name", "");
      } else if (!name.empty() && table_.find(name)) {
        add_mistake(1, "two columns are called '" + std::string(name) + "'", "keep one of them");
      }
      table_.columns.emplace_back(std::string(name));
    }
  }

  void row(std::string_view line) {
    sweep::CsvCells cells(line, scratch_);
    std::string_view cell;
    std::size_t count = 0;
    for (; cells.next(cell); ++count) {
      if (count == table_.columns.size()) {
        // At the comma that should not be there.
        return add_mistake(cells.column() - 1, "more cells than the header has columns", "");
      }
      table_.columns[count].append(cell);
    }
    if (count < table_.columns.size()) {
      return add_mistake(int(line.size()) + 1,
                         "the row has " + std::to_string(count) + " of " +
                             std::to_string(table_.columns.size()) + " cells",
                         "the file may be cut off here");
    }
    table_.lines.push_back(std::uint32_t(lines_.number()));
  }

  void add_mistake(int column, std::string what, std::string hint) {
    mistakes_.add({{table_.file, lines_.number(), column}, std::move(what), std::move(hint)});
  }

  sweep::CsvLines lines_;
  TextTable table_;
  std::string scratch_;
  std::int64_t line_bytes_ = sweep::input_limits().line_bytes;
  sweep::MistakeList mistakes_;
};

void append_csv(std::string_view cell, std::string& text) {
  if (cell.find_first_of(",\"\n") == std::string_view::npos) {
    text += cell;
    return;
  }
  text += '"';
  for (const char letter : cell) text.append(letter == '"' ? 2 : 1, letter);
  text += '"';
}

std::string csv_text(const TextTable& table) {
  std::string text;
  for (const TextColumn& column : table.columns) {
    if (&column != &table.columns.front()) text += ',';
    append_csv(column.name(), text);
  }
  text += '\n';
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const TextColumn& column : table.columns) {
      if (&column != &table.columns.front()) text += ',';
      append_csv(column[row], text);
    }
    text += '\n';
  }
  return text;
}

}  // namespace

std::optional<std::size_t> TextTable::find(std::string_view name) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name() == name) return i;
  }
  return std::nullopt;
}

engine::Location TextTable::where(std::size_t row, std::size_t column) const {
  if (lines.empty()) return {file, int(row) + 1, int(column) + 1};
  std::size_t before = 0;
  for (std::size_t i = 0; i < column; ++i) before += columns[i][row].size() + 1;
  return {file, int(lines[row]), int(before) + 1};
}

engine::Location TextTable::header(std::size_t column) const {
  std::size_t before = 0;
  for (std::size_t i = 0; i < column; ++i) before += columns[i].name().size() + 1;
  return {file, 1, int(before) + 1};
}

engine::Result<TextTable> parse_csv(std::string_view text, const std::string& file_name) {
  return CsvParser(text, file_name).parse();
}

engine::Result<TextTable> read_table(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    return engine::Mistake{{file.string()}, "there is no such file", "check its name"};
  }
  if (ends_with(file, ".parquet")) return read_text_parquet(file);
  const auto text = sweep::read_table_text(file);
  if (!text) return text.mistakes();
  return parse_csv(*text, file.string());
}

void write_table(const fs::path& file, const TextTable& table) {
  if (ends_with(file, ".parquet")) {
    write_text_parquet(file, table);
  } else {
    const std::string text = csv_text(table);
    write_durably(file, ends_with(file, ".gz") ? deflated(text) : text);
  }
}

}  // namespace results
