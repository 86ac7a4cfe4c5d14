#include "sweep/workload/acceptance_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "sweep/input/csv.h"
#include "sweep/input/mistake_list.h"
#include "sweep/input/read_text.h"
#include "sweep/workload/trace_rows.h"

namespace sweep {
namespace {

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

constexpr std::array<std::string_view, 3> kAcceptanceColumns = {"workload", "position",
                                                                "acceptance"};

class AcceptanceReader {
 public:
  explicit AcceptanceReader(const std::string& name) : name_(name) { places_.fill(-1); }

  engine::Result<engine::AcceptanceTable> read(std::string_view text) {
    CsvLines lines(text);
    bool headed = false;
    for (std::string_view line; lines.next(line);) {
      if (trimmed(line).empty()) continue;
      line_ = lines.number();
      cut(line);
      if (headed) {
        row();
      } else if (!header()) {
        return std::move(mistakes_).finish();
      }
      headed = true;
    }
    if (rows_.empty() && mistakes_.empty()) {
      mistake(0, "the file has no rows", "it needs columns position and acceptance");
    }
    engine::AcceptanceTable table;
    for (auto& [workload, positions] : rows_) complete(workload, positions, table);
    if (!mistakes_.empty()) return std::move(mistakes_).finish();
    table.checksum = fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
    return table;
  }

 private:
  struct Cell {
    std::string text;
    int column = 0;
  };

  void mistake(int column, std::string what, std::string hint) {
    mistakes_.add({{name_, line_, column}, std::move(what), std::move(hint)});
  }

  void cut(std::string_view line) {
    cells_.clear();
    std::string scratch;
    CsvCells cells(line, scratch);
    for (std::string_view cell; cells.next(cell);) {
      cells_.push_back({std::string(trimmed(cell)), cells.column()});
    }
  }

  bool header() {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const auto known = std::ranges::find(kAcceptanceColumns, cells_[i].text);
      if (known == kAcceptanceColumns.end()) continue;
      int& place = places_[std::size_t(known - kAcceptanceColumns.begin())];
      if (place >= 0)
        mistake(cells_[i].column, "a second column '" + cells_[i].text + "'", "keep one");
      place = int(i);
    }
    for (const std::size_t needed : {1, 2}) {
      if (places_[needed] >= 0) continue;
      mistake(1, "there is no column '" + std::string(kAcceptanceColumns[needed]) + "'",
              "the first line names the columns: position, acceptance and, for several, workload");
    }
    return mistakes_.empty();
  }

  void row() {
    const int last = *std::ranges::max_element(places_);
    if (int(cells_.size()) <= last) {
      return mistake(1, "the row has too few cells", "it needs one for each column");
    }
    const Cell& position = cells_[std::size_t(places_[1])];
    const Cell& acceptance = cells_[std::size_t(places_[2])];
    const auto place = number_in<std::int64_t>(position.text);
    if (!place || *place < 1 || *place > engine::kMostProposed) {
      return mistake(position.column, "'" + position.text + "' is no position",
                     "positions are whole numbers from 1 to 64");
    }
    const auto chance = number_in<double>(acceptance.text);
    if (!chance || !(*chance >= 0 && *chance <= 1)) {
      return mistake(acceptance.column, "'" + acceptance.text + "' is no probability",
                     "write a number between 0 and 1");
    }
    const std::string workload = places_[0] < 0 ? "" : cells_[std::size_t(places_[0])].text;
    Positions& positions = rows_[workload];
    if (positions.line == 0) positions.line = line_;
    std::optional<double>& stated = positions.chances[std::size_t(*place - 1)];
    if (stated) {
      return mistake(position.column,
                     "position " + position.text + " is stated twice" + of(workload),
                     "keep one of the rows");
    }
    stated = *chance;
  }

  struct Positions {
    std::array<std::optional<double>, engine::kMostProposed> chances;
    int line = 0;  // of the first row
  };

  static std::string of(const std::string& workload) {
    return workload.empty() ? "" : " for workload '" + workload + "'";
  }

  // The last one stated counts for all that follow; none before it may be missing.
  void complete(const std::string& workload, const Positions& positions,
                engine::AcceptanceTable& table) {
    std::size_t count = positions.chances.size();
    while (count > 0 && !positions.chances[count - 1]) --count;
    engine::Acceptance acceptance{};
    for (std::size_t i = 0; i < acceptance.size(); ++i) {
      const std::optional<double>& chance = positions.chances[std::min(i, count - 1)];
      if (!chance) {
        line_ = positions.line;
        return mistake(1, "position " + std::to_string(i + 1) + " is missing" + of(workload),
                       "every position up to the last needs a row");
      }
      acceptance[i] = *chance;
    }
    table.by_workload.emplace(workload, acceptance);
  }

  std::string name_;
  MistakeList mistakes_;
  std::vector<Cell> cells_;
  std::array<int, 3> places_{};
  std::map<std::string, Positions, std::less<>> rows_;
  int line_ = 0;
};

}  // namespace

engine::Result<engine::AcceptanceTable> parse_acceptance(std::string_view text,
                                                         const std::string& name) {
  return AcceptanceReader(name).read(text);
}

engine::Result<engine::AcceptanceTable> read_acceptance_file(const std::string& path) {
  const engine::Result<std::string> text = read_table_text(path);
  if (!text) return text.mistakes();
  return parse_acceptance(*text, path);
}

}  // namespace sweep
