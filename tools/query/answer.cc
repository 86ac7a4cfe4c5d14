#include "tools/query/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "results/durable_file.h"
#include "sweep/language/parse_quantity.h"

namespace tools {
namespace {

using results::TextColumn;
using results::TextTable;

std::string cell_of(double value) {
  return std::isfinite(value) ? sweep::format_number(value) : "";
}

TextColumn number_column(const std::string& name, const std::vector<double>& all,
                         std::span<const std::uint32_t> rows) {
  TextColumn column(name);
  for (const std::uint32_t row : rows) column.append(cell_of(all[row]));
  return column;
}

TextColumn text_column(const std::string& name, const Coded& all,
                       std::span<const std::uint32_t> rows) {
  TextColumn column(name);
  for (const std::uint32_t row : rows) column.append(all[row]);
  return column;
}

TextColumn behind_column(const std::vector<double>& figure, std::span<const std::uint32_t> rows) {
  TextColumn column("behind_percent");
  for (const std::uint32_t row : rows) {
    const double best = figure[rows.front()];
    column.append(best == 0 ? "" : fmt::format("{:.2f}", 100 * std::abs(figure[row] / best - 1)));
  }
  return column;
}

void add_columns(TextTable& table, const RunRows& rows, const std::vector<std::string>& names,
                 std::span<const std::uint32_t> chosen) {
  for (const std::string& name : names) {
    if (table.find(name)) continue;
    const results::Column* column = rows.find_axis(name);
    if (is_number(*column) && column->type != results::ColumnType::boolean) {
      table.columns.push_back(number_column(name, rows.numbers(column->name), chosen));
    } else {
      table.columns.push_back(text_column(name, rows.texts(column->name), chosen));
    }
  }
}

// A cell for eyes: six digits; controls and bars would break a line of Markdown.
std::string shown(std::string_view cell, AnswerFormat format) {
  const auto number =
      sweep::is_digits(cell) || (cell.starts_with('-') && sweep::is_digits(cell.substr(1)))
          ? sweep::parse_number(cell)
          : std::nullopt;
  const bool is_whole = cell.find_first_of(".eE") == std::string_view::npos;
  if (number) return is_whole ? std::string(cell) : fmt::format("{:.6g}", *number);
  std::string text;
  for (const char c : cell) {
    if (format == AnswerFormat::markdown && (c == '|' || c == '\\' || c == '<' || c == '`'))
      text += '\\';
    text += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  }
  return text;
}

std::string csv_cell(std::string_view cell) {
  if (cell.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(cell);
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

std::string csv_text(const TextTable& table) {
  std::string text;
  const auto line = [&](auto cell) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      text += (c == 0 ? "" : ",") + csv_cell(cell(table.columns[c]));
    }
    text += '\n';
  };
  line([](const TextColumn& column) -> std::string_view { return column.name(); });
  for (std::size_t row = 0; row < table.rows(); ++row) {
    line([row](const TextColumn& column) { return column[row]; });
  }
  return text;
}

// Columns of a terminal, about: bytes that go on with a character of UTF-8 take none.
std::size_t width_of(std::string_view text) {
  return std::size_t(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// A long text, such as a command to paste, does not make all others of its column as wide.
constexpr std::size_t kWidest = 100;

// Cells of one column are as wide as the widest; numbers stand to the right.
std::string aligned_text(const TextTable& table, AnswerFormat format) {
  const bool bars = format == AnswerFormat::markdown;
  std::vector<std::string> lines(table.rows() + 2);
  for (const TextColumn& column : table.columns) {
    std::vector<std::string> cells{shown(column.name(), format), ""};
    bool numbers = true;
    for (std::size_t row = 0; row < column.size(); ++row) {
      cells.push_back(shown(column[row], format));
      numbers = numbers && (cells.back().empty() ||
                            cells.back().find_first_not_of("0123456789.e+-") == std::string::npos);
    }
    std::size_t width = bars ? 3 : 1;
    for (const std::string& cell : cells) {
      width = std::max(width, std::min(width_of(cell), kWidest));
    }
    cells[1] = bars ? std::string(width - 1, '-') + (numbers ? ':' : '-') : "";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(width - std::min(width, width_of(cells[i])), ' ');
      lines[i] += (bars ? "| " : "") + (numbers ? space + cells[i] : cells[i] + space) +
                  (bars ? " " : "  ");
    }
  }
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!bars && i == 1) continue;  // only Markdown has a line below the names
    std::string& line = lines[i];
    if (bars) line += '|';
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

bool ends_in_any(const std::string& file, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&file](std::string_view end) { return file.ends_with(end); });
}

}  // namespace

TextTable rows_answer(const RunRows& rows, const std::vector<std::uint32_t>& chosen,
                      const Candidates& candidates, const Question& question,
                      const std::vector<std::string>& show, Behind behind) {
  TextTable table;
  table.columns.push_back(number_column("index", rows.numbers("index"), chosen));
  std::vector<std::string> axes;
  if (!candidates.group_column.empty()) axes.push_back(axis_name(candidates.group_column));
  for (const results::Column& axis : rows.axes()) axes.push_back(axis_name(axis.name));
  add_columns(table, rows, axes, chosen);
  for (std::size_t i = 0; i < question.objectives.size(); ++i) {
    const std::string& name = question.objectives[i].column;
    if (!table.find(name))
      table.columns.push_back(number_column(name, candidates.values[i], chosen));
    if (i == 0 && behind == Behind::yes) {
      table.columns.push_back(behind_column(candidates.values[i], chosen));
    }
  }
  add_columns(table, rows, show, chosen);
  return table;
}

TextTable effects_answer(const std::vector<AxisEffect>& effects) {
  TextTable table;
  const auto column = [&](const std::string& name, auto cell) {
    TextColumn& cells = table.columns.emplace_back(name);
    for (const AxisEffect& effect : effects) cells.append(cell(effect));
  };
  const auto rounded = [](double value) {
    return std::isfinite(value) ? fmt::format("{:.4g}", value) : std::string();
  };
  column("axis", [](const AxisEffect& effect) { return effect.axis; });
  column("values", [](const AxisEffect& effect) { return std::to_string(effect.values); });
  column("explained_percent",
         [&](const AxisEffect& effect) { return rounded(100 * effect.share); });
  column("ratio", [&](const AxisEffect& effect) { return rounded(effect.ratio); });
  column("elasticity", [&](const AxisEffect& effect) { return rounded(effect.elasticity); });
  column("best", [](const AxisEffect& effect) { return effect.best; });
  column("sets", [](const AxisEffect& effect) { return std::to_string(effect.sets); });
  return table;
}

std::string to_text(const TextTable& table, AnswerFormat format) {
  return format == AnswerFormat::csv ? csv_text(table) : aligned_text(table, format);
}

std::vector<engine::Mistake> check_answer_file(const std::string& file) {
  if (file.empty() || ends_in_any(file, {".csv", ".csv.gz", ".parquet", ".md", ".txt"})) return {};
  return {{{.file = file},
           "the end of the name does not say which kind of file to write",
           "name it .txt, .md, .csv, .csv.gz or .parquet"}};
}

void write_answer(const std::string& file, const TextTable& table) {
  if (ends_in_any(file, {".md", ".txt"})) {
    const auto format = file.ends_with(".md") ? AnswerFormat::markdown : AnswerFormat::text;
    results::write_durably(std::filesystem::absolute(file), to_text(table, format));
  } else {
    results::write_table(std::filesystem::absolute(file), table);
  }
}

}  // namespace tools
