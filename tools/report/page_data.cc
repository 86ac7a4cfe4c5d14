#include "tools/report/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "tools/query/question.h"
#include "tools/query/where.h"
#include "tools/report/figure_words.h"
#include "tools/report/first_view.h"

namespace tools {
namespace {

using nlohmann::json;
using results::Column;
using results::ColumnRole;

// The texts of a result that a page groups and counts by.
constexpr std::array<std::string_view, 7> kResults = {
    "status", "reason_class", "reason", "saturation", "bound", "tier", "extrapolated"};
// What a roofline is drawn from: peaks of the device and the format that the arithmetic runs in.
constexpr std::array<std::string_view, 10> kRooflineSettings = {
    "device",           "quant.activations", "device.memory_bandwidth", "device.peak.fp32",
    "device.peak.tf32", "device.peak.bf16",  "device.peak.fp16",        "device.peak.fp8",
    "device.peak.int8", "device.peak.fp4"};

json described(const Column& column, std::string_view role) {
  return {{"name", column.name},
          {"label", axis_name(column.name)},
          {"role", role},
          {"unit", column.unit},
          {"description", column.description}};
}

json coded_column(const Column& column, std::string_view role, const Coded& all,
                  const PageRows& rows, Blobs& blobs) {
  // Only names that the page's rows have, in the order of their appearance there.
  Coded some{.codes = rows.of(all.codes), .names = {}};
  std::vector<std::uint32_t> renumbered(all.names.size(), Coded::kNone);
  for (std::uint32_t& code : some.codes) {
    if (code == Coded::kNone) continue;
    if (renumbered[code] == Coded::kNone) {
      renumbered[code] = std::uint32_t(some.names.size());
      some.names.push_back(all.names[code]);
    }
    code = renumbered[code];
  }
  json entry = described(column, role);
  entry["names"] = some.names;
  entry["blob"] = blobs.add_codes(some.codes, some.names.size());
  return entry;
}

struct Range {
  double least = INFINITY, most = -INFINITY;
  std::size_t count = 0;
};
// Of the rows that count.
Range range_of(const std::vector<double>& values, const std::vector<std::uint8_t>& counts) {
  Range range;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]) || counts[i] == 0) continue;
    range.least = std::min(range.least, values[i]);
    range.most = std::max(range.most, values[i]);
    ++range.count;
  }
  return range;
}

// Rows of points that work.
std::vector<std::uint8_t> working(const RunRows& points, const PageRows& rows) {
  const Coded status = points.texts("status");
  std::vector<std::uint8_t> works;
  for (const std::uint32_t row : rows.rows) works.push_back(std::uint8_t(status[row] == "ok"));
  return works;
}

// Labels of six digits for computed numbers. The page draws by the numbers themselves.
Coded rounded_labels(const std::vector<double>& numbers) {
  Coded labels;
  std::unordered_map<std::string, std::uint32_t> known;
  for (const double number : numbers) {
    if (std::isnan(number)) {
      labels.codes.push_back(Coded::kNone);
      continue;
    }
    const auto [place, fresh] =
        known.try_emplace(fmt::format("{:.6g}", number), std::uint32_t(known.size()));
    if (fresh) labels.names.push_back(place->first);
    labels.codes.push_back(place->second);
  }
  return labels;
}

void add_axes(json& columns, const RunRows& points, const PageRows& rows, Blobs& blobs) {
  for (const Column& column : points.axes()) {
    const Coded labels =
        column.sampled ? rounded_labels(points.numbers(column.name)) : points.texts(column.name);
    json entry = coded_column(column, "axis", labels, rows, blobs);
    if (column.sampled) {
      entry["sampled"] = true;
      // The setting itself may be in the page too, under its own name.
      entry["name"] = std::string(kAxisPrefix) + column.name;
    }
    // An axis over numbers is drawn and sorted by them, not by what was written.
    const Column* setting = points.find(axis_name(column.name));
    if (setting != nullptr && is_number(*setting)) {
      entry["unit"] = setting->unit;
      entry["description"] = setting->description;
      entry["numbers"] = blobs.add(rows.of(points.numbers(setting->name)));
    } else if (setting != nullptr && !setting->description.empty()) {
      entry["description"] = setting->description;
    }
    columns.push_back(std::move(entry));
  }
}

// Brief labels where these tell the figures apart, else full ones, and where these do not either, names besides.
void label(json& figures) {
  std::unordered_map<std::string, int> brief, full;
  const auto of = [](const json& figure, LabelLength length) {
    return figure_label(figure["name"].get<std::string>(), figure["description"].get<std::string>(),
                        length);
  };
  for (const json& figure : figures) {
    ++brief[of(figure, LabelLength::brief)];
    ++full[of(figure, LabelLength::full)];
  }
  for (json& figure : figures) {
    std::string label = of(figure, LabelLength::brief);
    if (brief[label] > 1) label = of(figure, LabelLength::full);
    if (full[label] > 1) label += " (" + figure["name"].get<std::string>() + ")";
    figure["label"] = std::move(label);
  }
}

// Figures that are the same everywhere go to the list of facts: no chart can show them. What a figure spans counts
// working points alone, since a page draws and limits only those.
void add_metrics(json& columns, json& facts, const RunRows& points, const PageRows& rows,
                 Blobs& blobs) {
  const std::vector<std::uint8_t> works = working(points, rows), all(rows.rows.size(), 1);
  json figures = json::array();
  for (const Column& column : points.columns()) {
    if (column.role != ColumnRole::metric) continue;
    const std::vector<double> values = rows.of(points.numbers(column.name));
    const Range whole = range_of(values, all);
    if (whole.count == 0) continue;
    json entry = described(column, "metric");
    entry["group"] = figure_group(column.name);
    if (whole.least == whole.most) {
      entry["value"] = whole.least;
      facts.push_back(std::move(entry));
      continue;
    }
    entry["better"] = better_of(column.name) == Better::higher ? "higher" : "lower";
    if (const Range range = range_of(values, works); range.count > 0) {
      entry["least"] = range.least;
      entry["most"] = range.most;
    }
    entry["blob"] = blobs.add(values);
    figures.push_back(std::move(entry));
  }
  label(figures);
  label(facts);
  for (json& figure : figures) columns.push_back(std::move(figure));
}

void add_others(json& columns, const RunRows& points, const PageRows& rows, Blobs& blobs) {
  for (const std::string_view name : kResults) {
    if (const Column* column = points.find(name)) {
      columns.push_back(coded_column(*column, "result", points.texts(name), rows, blobs));
    }
  }
  for (const std::string_view name : kRooflineSettings) {
    const Column* column = points.find(name);
    if (column == nullptr) continue;
    if (is_number(*column)) {
      json entry = described(*column, "setting");
      entry["blob"] = blobs.add(rows.of(points.numbers(name)));
      columns.push_back(std::move(entry));
    } else {
      columns.push_back(coded_column(*column, "setting", points.texts(name), rows, blobs));
    }
  }
}

json run_facts(const RunRows& points) {
  json runs = json::array();
  for (std::size_t run = 0; run < points.runs().size(); ++run) {
    json facts = {{"folder", points.runs()[run].folder.string()},
                  {"rows", points.runs()[run].rows}};
    for (const char* name : {"program_version", "program_commit", "model_version", "arrow_version",
                             "spec_hash", "positions", "run_yaml"}) {
      facts[name] = points.metadata(run, std::string("llmsweep.") + name);
    }
    runs.push_back(std::move(facts));
  }
  return runs;
}

}  // namespace

engine::Result<PageRows> page_rows(const RunRows& points, const ReportOptions& options) {
  PageRows found;
  std::vector<std::uint8_t> holds(points.rows(), 1);
  if (!options.where.empty()) {
    auto asked = rows_where(points, options.where);
    if (!asked) return asked.mistakes();
    holds = std::move(asked->holds);
    found.notes = std::move(asked->notes);
  }
  for (std::uint32_t row = 0; row < points.rows(); ++row) {
    if (holds[row] != 0) found.rows.push_back(row);
  }
  found.asked_for = found.rows.size();
  if (found.asked_for > options.most_points) {
    std::vector<std::uint32_t> some(options.most_points);
    for (std::size_t i = 0; i < some.size(); ++i) {
      some[i] = found.rows[i * found.asked_for / options.most_points];
    }
    found.rows = std::move(some);
  }
  return found;
}

json points_data(const RunRows& points, const PageRows& rows, Blobs& blobs) {
  json columns = json::array();
  json facts = json::array();
  columns.push_back({{"name", "index"},
                     {"label", "index"},
                     {"role", "index"},
                     {"unit", ""},
                     {"description", "position in the grid of the sweep"},
                     {"blob", blobs.add_exact(rows.of(points.numbers("index")))}});
  add_axes(columns, points, rows, blobs);
  add_metrics(columns, facts, points, rows, blobs);
  add_others(columns, points, rows, blobs);
  json first = first_view(points, columns);
  return {{"rows", rows.rows.size()},  {"asked_for", rows.asked_for},
          {"all_rows", points.rows()}, {"columns", std::move(columns)},
          {"facts", std::move(facts)}, {"first", std::move(first)},
          {"runs", run_facts(points)}};
}

PageRowFinder::PageRowFinder(const RunRows& points, const PageRows& rows) {
  const std::vector<double> index = points.numbers("index");
  std::size_t end = 0, next = 0;
  for (const RunRows::Run& each : points.runs()) {
    end += each.rows;
    std::vector<Entry>& entries = entries_.emplace_back();
    for (; next < rows.rows.size() && rows.rows[next] < end; ++next) {
      entries.push_back({index[rows.rows[next]], std::uint32_t(next)});
    }
    std::ranges::sort(entries, {}, &Entry::index);
  }
}

std::uint32_t PageRowFinder::find(std::size_t run, double index) const {
  const auto found = std::ranges::lower_bound(entries_[run], index, {}, &Entry::index);
  return found == entries_[run].end() || found->index != index ? kNotThere : found->row;
}

std::optional<DetailRows> detail_rows(const RunRows& points, const PageRows& rows,
                                      const std::string& table) {
  std::vector<std::string> folders;
  std::vector<std::size_t> numbers;  // of the runs that have the table
  for (std::size_t run = 0; run < points.runs().size(); ++run) {
    const auto& folder = points.runs()[run].folder;
    if (results::table_files(folder, table).empty()) continue;
    folders.push_back(folder.string());
    numbers.push_back(run);
  }
  if (folders.empty()) return std::nullopt;
  auto opened = RunRows::open(folders, table);
  if (!opened) return std::nullopt;
  DetailRows details{std::move(opened).value(), {}};
  const PageRowFinder finder(points, rows);
  const std::vector<double> index = details.table.numbers("index");
  details.page_row.reserve(index.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t end = details.page_row.size() + details.table.runs()[i].rows;
    while (details.page_row.size() < end) {
      details.page_row.push_back(finder.find(numbers[i], index[details.page_row.size()]));
    }
  }
  return details;
}

}  // namespace tools
