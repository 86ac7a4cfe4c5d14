#include "tools/compare/drift.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "sweep/language/parse_quantity.h"

namespace tools {
namespace {

using results::Column;
using results::ColumnRole;

constexpr const char* kOption = "--tolerance";

std::optional<double> share_of(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const auto number = sweep::is_digits(text) ? sweep::parse_number(text) : std::nullopt;
  if (!number || *number < 0) return std::nullopt;
  return percent ? *number / 100 : *number;
}

// The figures of one column, pair by pair.
struct FigureInBoth {
  std::vector<double> before, after;

  FigureInBoth(const RunPair& pair, const std::string& column)
      : before(pair.old_run.numbers(column)), after(pair.new_run.numbers(column)) {}
};

bool has_changed(double before, double after, double tolerance) {
  if (before == after || (std::isnan(before) && std::isnan(after))) return false;
  const double change = relative_change(before, after);
  return std::isnan(change) || std::abs(change) > tolerance;
}

// Figures that only one has come first, then those from zero, then the others.
double badness(const FigureDrift::Point& point) {
  const double change = relative_change(point.before, point.after);
  return std::isnan(change) ? std::numeric_limits<double>::infinity() : std::abs(change);
}

double median_of(std::vector<double>& values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

FigureDrift figure_drift(const RunPair& pair, const std::vector<std::uint8_t>& ok,
                         const std::string& column, const Tolerances& tolerances, std::size_t keep,
                         std::vector<std::uint8_t>& drifted) {
  const FigureInBoth figures(pair, column);
  const double tolerance = tolerances.for_column(column);
  FigureDrift drift{.column = column};
  std::vector<FigureDrift::Point> changed;
  std::vector<double> changes;
  for (std::uint32_t i = 0; i < pair.pairs.size(); ++i) {
    if (ok[i] == 0) continue;
    const double before = figures.before[pair.pairs[i].old_row];
    const double after = figures.after[pair.pairs[i].new_row];
    if (std::isnan(before) && std::isnan(after)) continue;
    if (tolerances.only_common && (std::isnan(before) || std::isnan(after))) continue;
    ++drift.compared;
    if (!has_changed(before, after, tolerance)) continue;
    drifted[i] = 1;
    changed.push_back({i, before, after});
    const double change = relative_change(before, after);
    if (std::isnan(change)) {
      ++drift.only_one;
    } else {
      changes.push_back(change);
    }
  }
  drift.changed = changed.size();
  drift.median = median_of(changes);
  const std::size_t kept = std::min(keep, changed.size());
  std::ranges::partial_sort(changed, changed.begin() + std::ptrdiff_t(kept),
                            [](const auto& a, const auto& b) {
                              const double worse = badness(a), other = badness(b);
                              return worse != other ? worse > other : a.pair < b.pair;
                            });
  drift.worst.assign(changed.begin(), changed.begin() + std::ptrdiff_t(kept));
  return drift;
}

// Where nobody names a role there is no column for it, and no such role.
Coded texts_or_absent(const RunRows& run, const std::string& column) {
  if (run.find(column) != nullptr) return run.texts(column);
  return {.codes = std::vector<std::uint32_t>(run.rows()), .names = {"false"}};
}

// A column as numbers that are equal where the cells are, in both runs; and the texts behind them.
class Cells {
 public:
  Cells(const RunPair& pair, const std::string& column) {
    const Column* found = pair.new_run.find(column);
    const results::ColumnType type = (found != nullptr ? found : pair.old_run.find(column))->type;
    const bool numbers = type == results::ColumnType::int64 || type == results::ColumnType::float64;
    for (auto [run, cells] : {std::pair{&pair.old_run, &before_}, {&pair.new_run, &after_}}) {
      *cells = numbers ? of_numbers(run->numbers(column)) : of_texts(texts_or_absent(*run, column));
    }
    is_number_ = numbers;
  }

  std::uint64_t before(const RowPair& rows) const { return before_[rows.old_row]; }
  std::uint64_t after(const RowPair& rows) const { return after_[rows.new_row]; }
  std::string text(std::uint64_t cell) const {
    if (!is_number_) return cell == Coded::kNone ? "" : names_[cell];
    const double value = std::bit_cast<double>(cell);
    return std::isnan(value) ? "" : sweep::format_number(value);
  }

 private:
  static std::vector<std::uint64_t> of_numbers(const std::vector<double>& values) {
    std::vector<std::uint64_t> cells;
    cells.reserve(values.size());
    for (const double value : values) cells.push_back(std::bit_cast<std::uint64_t>(value));
    return cells;
  }
  std::vector<std::uint64_t> of_texts(const Coded& texts) {
    std::vector<std::uint64_t> shared;
    for (const std::string& name : texts.names) {
      const auto [place, is_new] = known_.try_emplace(name, names_.size());
      if (is_new) names_.push_back(name);
      shared.push_back(place->second);
    }
    std::vector<std::uint64_t> cells;
    cells.reserve(texts.codes.size());
    for (const std::uint32_t code : texts.codes) {
      cells.push_back(code == Coded::kNone ? std::uint64_t{Coded::kNone} : shared[code]);
    }
    return cells;
  }

  bool is_number_ = false;
  std::vector<std::uint64_t> before_, after_;
  std::map<std::string, std::uint64_t> known_;
  std::vector<std::string> names_;
};

// Whether every point of both runs has the same: the files say so themselves, unread.
bool same_throughout(const RunPair& pair, const std::string& column) {
  const std::string value = pair.new_run.runs().front().files.front().constant(column);
  if (value.empty()) return false;
  const auto has_value = [&](const results::ParquetReader& file) {
    return file.constant(column) == value;
  };
  return std::ranges::all_of(pair.old_run.runs().front().files, has_value) &&
         std::ranges::all_of(pair.new_run.runs().front().files, has_value);
}

// Whether a role is there: `prefill.present`, in runs whose sweeps name it.
bool is_presence(const Column& column) {
  return column.role == ColumnRole::setting && column.name.ends_with(".present");
}

}  // namespace

engine::Result<Tolerances> parse_tolerances(const std::vector<std::string>& written,
                                            const RunPair& pair) {
  Tolerances tolerances;
  std::vector<engine::Mistake> mistakes;
  for (const std::string& text : written) {
    const std::size_t equals = text.find('=');
    const std::string column = equals == std::string::npos ? "" : text.substr(0, equals);
    const auto share = share_of(equals == std::string::npos ? text : text.substr(equals + 1));
    const Column* found = pair.new_run.find(column);
    if (!share) {
      mistakes.push_back(
          {{.file = kOption}, "'" + text + "' is not a share", "write 1%, 0.01 or ttft_p99_s=5%"});
    } else if (column.empty()) {
      tolerances.usual = *share;
    } else if (found == nullptr) {
      mistakes.push_back(unknown_column(pair.new_run, column, {.file = kOption}));
    } else if (found->role != ColumnRole::metric) {
      mistakes.push_back({{.file = kOption},
                          "column '" + column + "' is not a figure",
                          "'llmsweep describe' lists the figures"});
    } else {
      tolerances.of[column] = *share;
    }
  }
  if (!mistakes.empty()) return mistakes;
  return tolerances;
}

double relative_change(double before, double after) {
  if (before == after) return 0;
  return (after - before) / std::abs(before);
}

std::vector<FigureDrift> figure_drifts(const RunPair& pair, const std::vector<std::uint8_t>& ok,
                                       const Tolerances& tolerances, std::size_t keep,
                                       std::vector<std::uint8_t>& drifted) {
  std::vector<FigureDrift> drifts;
  for (const Column& column : pair.new_run.columns()) {
    if (column.role != ColumnRole::metric || pair.old_run.find(column.name) == nullptr) continue;
    FigureDrift drift = figure_drift(pair, ok, column.name, tolerances, keep, drifted);
    if (drift.compared > 0) drifts.push_back(std::move(drift));
  }
  return drifts;
}

TextDrift text_drift(const RunPair& pair, const std::string& column) {
  // More kinds of change than this are counted together, since a longer list is of no use.
  constexpr std::size_t kMostKinds = 1000;
  const Cells cells(pair, column);
  TextDrift drift{.column = column, .compared = pair.pairs.size()};
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> known;
  for (std::uint32_t i = 0; i < pair.pairs.size(); ++i) {
    const std::uint64_t before = cells.before(pair.pairs[i]);
    const std::uint64_t after = cells.after(pair.pairs[i]);
    if (before == after) continue;
    ++drift.changed;
    auto place = known.find({before, after});
    if (place == known.end()) {
      if (known.size() == kMostKinds) continue;
      place = known.emplace(std::pair{before, after}, drift.changes.size()).first;
      drift.changes.push_back(
          {.before = cells.text(before), .after = cells.text(after), .first = i});
    }
    ++drift.changes[place->second].points;
  }
  std::ranges::stable_sort(drift.changes, std::greater{}, &TextDrift::Change::points);
  return drift;
}

std::vector<TextDrift> setting_drifts(const RunPair& pair) {
  std::vector<TextDrift> drifts;
  if (pair.by_labels == 0) return drifts;
  for (const auto& [one, other] :
       {std::pair{&pair.old_run, &pair.new_run}, {&pair.new_run, &pair.old_run}}) {
    for (const Column& column : one->columns()) {
      if (!is_presence(column) || other->find(column.name) != nullptr) continue;
      TextDrift drift = text_drift(pair, column.name);
      if (drift.changed > 0) drifts.push_back(std::move(drift));
    }
  }
  for (const Column& column : pair.new_run.columns()) {
    if (column.role != ColumnRole::setting || pair.old_run.find(column.name) == nullptr) continue;
    if (same_throughout(pair, column.name)) continue;
    TextDrift drift = text_drift(pair, column.name);
    if (drift.changed > 0) drifts.push_back(std::move(drift));
  }
  return drifts;
}

std::vector<std::uint8_t> both_ok(const RunPair& pair) {
  const Coded olds = pair.old_run.texts("status");
  const Coded news = pair.new_run.texts("status");
  std::vector<std::uint8_t> flags;
  flags.reserve(pair.pairs.size());
  for (const RowPair& rows : pair.pairs) {
    flags.push_back(std::uint8_t(olds[rows.old_row] == "ok" && news[rows.new_row] == "ok"));
  }
  return flags;
}

}  // namespace tools
