#include "tools/query/points.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "engine/leaves/key.h"
#include "engine/leaves/leaves.h"
#include "results/checked_file.h"
#include "results/failure.h"
#include "results/replaced_folder.h"
#include "results/run_folder.h"
#include "results/table.h"
#include "sweep/language/parse_quantity.h"
#include "sweep/language/suggest.h"

namespace tools {
namespace {

namespace fs = std::filesystem;
using results::Column;
using results::ColumnRole;
using results::ColumnType;

engine::Mistake not_a_run(const fs::path& folder, const std::string& table) {
  std::error_code ignored;
  const engine::Location where{.file = folder.string()};
  if (!fs::exists(folder, ignored)) {
    return {where, "there is no such folder",
            "a run folder is what 'llmsweep run SPEC -o DIR' writes"};
  }
  if (!fs::is_directory(folder, ignored)) {
    return {where, "this is not a folder", "name the run folder, not a file in it"};
  }
  return {where, "this is not a run folder: there is no " + table + "/part-*.parquet in it",
          "a run folder is what 'llmsweep run SPEC -o DIR' writes"};
}

// What the manifests say of a folder that has parts.
engine::Result<results::RunSummary> believed(const fs::path& folder) {
  try {
    auto known = results::summarise(folder);
    if (!known) return known;
    for (const results::PartRecord& part : known->parts) {
      std::string trouble = results::trouble_with(folder, part, results::Look::length);
      if (trouble.empty()) continue;
      return engine::Mistake{{.file = folder.string()},
                             std::move(trouble),
                             fmt::format("'llmsweep verify {}' says what is damaged; with --repair "
                                         "it drops that, and the next run computes it again",
                                         folder.string())};
    }
    return known;
  } catch (const results::Failure& failure) {
    // A mistake and not a failure of the disk: the user has to name a sound run.
    return engine::Mistake{{}, failure.what(), ""};
  }
}

// The files of a table that the manifests name, in the order of their names.
std::set<fs::path> named_files(const results::RunSummary& known, const fs::path& folder,
                               const std::string& table) {
  std::set<fs::path> files;
  const auto place = engine::from_name<results::Table>(table);
  engine::check(place.has_value(), "there is such a table");
  for (const results::PartRecord& part : known.parts) {
    const std::string& name = part.files[*place].name;
    if (!name.empty()) files.insert(folder / name);
  }
  return files;
}

// Codes for texts that arrive one after another.
class Coder {
 public:
  void add(std::string_view text) {
    // Runs of one text are common.
    if (last_ >= coded_.names.size() || coded_.names[last_] != text) last_ = code_of(text);
    coded_.codes.push_back(last_);
  }
  void add(const results::CodedTexts& texts) {
    std::vector<std::uint32_t> ours;
    for (const std::string& name : texts.names) ours.push_back(code_of(name));
    coded_.codes.reserve(coded_.codes.size() + texts.codes.size());
    for (const std::uint32_t code : texts.codes) {
      coded_.codes.push_back(code == results::CodedTexts::kNone ? Coded::kNone : ours[code]);
    }
  }
  void add_none() { coded_.codes.push_back(Coded::kNone); }
  Coded take() && { return std::move(coded_); }

 private:
  std::uint32_t code_of(std::string_view text) {
    const auto [place, is_new] =
        known_.try_emplace(std::string(text), std::uint32_t(coded_.names.size()));
    if (is_new) coded_.names.emplace_back(text);
    return place->second;
  }

  Coded coded_;
  std::unordered_map<std::string, std::uint32_t> known_;
  std::uint32_t last_ = 0;
};

std::vector<double> numbers_of(const results::ParquetReader& file, const Column& column) {
  if (column.type != ColumnType::boolean) return file.numbers(column.name);
  std::vector<double> numbers;
  for (const std::uint8_t flag : file.booleans(column.name)) {
    numbers.push_back(flag == results::kNullBoolean ? std::numeric_limits<double>::quiet_NaN()
                                                    : flag);
  }
  return numbers;
}

void add_texts(const results::ParquetReader& file, const Column& column, Coder& coder) {
  if (column.name == "key") {
    for (const engine::Key& key : file.keys()) coder.add(engine::to_hex(key));
    return;
  }
  if (column.type == ColumnType::text) return coder.add(file.coded_texts(column.name));
  for (const double value : numbers_of(file, column)) {
    if (value != value) {
      coder.add_none();
    } else if (column.type == ColumnType::boolean) {
      coder.add(value != 0 ? "true" : "false");
    } else {
      coder.add(sweep::format_number(value));
    }
  }
}

// What a sweep would have written for the value.
std::string label_of(const engine::Leaf& leaf, double value) {
  if (leaf.range.word != nullptr && value == leaf.range.word_value) return leaf.range.word;
  if (leaf.kind != engine::LeafKind::quantity) return sweep::format_number(value);
  return sweep::format_quantity(value, leaf.unit);
}

// Labels of an axis that this run does not have: the run is at one place of it, or at several as another axis moves it.
void add_labels(const results::ParquetReader& file, const Column& setting, Coder& coder) {
  const int leaf = engine::leaf_table().find_leaf(setting.name);
  if (leaf < 0 || setting.type == ColumnType::text || setting.type == ColumnType::boolean) {
    return add_texts(file, setting, coder);
  }
  for (const double value : numbers_of(file, setting)) {
    if (value != value) {
      coder.add_none();
    } else {
      coder.add(label_of(engine::leaf_at(leaf), value));
    }
  }
}

struct Opened {
  RunRows::Run run;
  std::string note;
};

// Of a folder without a file of the table: it may be a run all the same.
engine::Mistake nothing_to_open(const std::string& folder, const std::string& table) {
  const engine::Mistake no_run = not_a_run(folder, table);
  if (table != "points") return no_run;
  const auto known = believed(folder);
  return known ? results::without_points(folder, *known) : no_run;
}

engine::Result<Opened> open_run(const std::string& folder, const std::string& table) {
  if (results::table_files(folder, table).empty()) return nothing_to_open(folder, table);
  const auto known = believed(folder);
  if (!known) return known.mistakes();
  Opened opened{.run = {.folder = folder}};
  for (const fs::path& file : named_files(*known, folder, table)) {
    opened.run.files.emplace_back(file);
    opened.run.rows += opened.run.files.back().rows();
  }
  if (opened.run.files.empty()) return nothing_to_open(folder, table);
  opened.note = results::not_finished(folder, *known);
  return opened;
}

}  // namespace

engine::Result<RunRows> RunRows::open(const std::vector<std::string>& folders,
                                      const std::string& table) {
  RunRows all;
  std::vector<engine::Mistake> mistakes;
  if (folders.size() > 1 && table == "points") {
    all.columns_.push_back({.name = std::string(kRunColumn),
                            .type = ColumnType::text,
                            .role = ColumnRole::label,
                            .description = "folder of the run"});
  }
  std::set<fs::path> places;
  for (const std::string& folder : folders) {
    std::error_code ignored;
    const fs::path place = fs::weakly_canonical(folder, ignored);
    if (table == "points" && !places.insert(place).second) {
      mistakes.push_back({{.file = folder},
                          "this run is named twice, so each of its points would count twice",
                          "name each run once"});
      continue;
    }
    auto opened = results::read_again_if_replaced(folder, [&] { return open_run(folder, table); });
    if (!opened) {
      mistakes.insert(mistakes.end(), opened.mistakes().begin(), opened.mistakes().end());
      continue;
    }
    auto& [run, note] = *opened;
    if (!note.empty()) all.notes_.push_back(std::move(note));
    for (Column& column : run.files.front().columns()) {
      if (all.find(column.name) == nullptr) all.columns_.push_back(std::move(column));
    }
    all.rows_ += run.rows;
    all.runs_.push_back(std::move(run));
  }
  if (!mistakes.empty()) return mistakes;
  return all;
}

RunRows RunRows::of(results::ParquetReader file) {
  RunRows one;
  one.rows_ = file.rows();
  one.columns_ = file.columns();
  Run& run = one.runs_.emplace_back(Run{.folder = file.path().parent_path(), .rows = one.rows_});
  run.files.push_back(std::move(file));
  return one;
}

const Column* RunRows::find(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &Column::name);
  return found == columns_.end() ? nullptr : &*found;
}

const Column* RunRows::find_axis(std::string_view name) const {
  const Column* label = find(std::string(kAxisPrefix) + std::string(name));
  return label != nullptr ? label : find(name);
}

std::vector<Column> RunRows::axes() const {
  std::vector<Column> axes;
  for (const Column& column : columns_) {
    if (column.role == ColumnRole::label) axes.push_back(column);
  }
  for (const Column& column : columns_) {
    if (column.sampled && find_axis(column.name) == find(column.name)) axes.push_back(column);
  }
  return axes;
}

std::vector<double> RunRows::numbers(std::string_view name) const {
  const Column* column = find(name);
  std::vector<double> all;
  all.reserve(rows_);
  for (const Run& run : runs_) {
    for (const auto& file : run.files) {
      if (column == nullptr || !file.has(name)) {
        all.insert(all.end(), file.rows(), std::numeric_limits<double>::quiet_NaN());
        continue;
      }
      const std::vector<double> some = numbers_of(file, *column);
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  return all;
}

Coded RunRows::run_names() const {
  Coded names;
  for (const Run& run : runs_) {
    names.codes.insert(names.codes.end(), run.rows, std::uint32_t(names.names.size()));
    names.names.push_back(run.folder.string());
  }
  return names;
}

Coded RunRows::texts(std::string_view name) const {
  const Column* column = find(name);
  if (name == kRunColumn && runs_.size() > 1) return run_names();
  const Column* setting = name.starts_with(kAxisPrefix) ? find(axis_name(name)) : nullptr;
  Coder coder;
  for (const Run& run : runs_) {
    for (const auto& file : run.files) {
      if (column != nullptr && file.has(name)) {
        add_texts(file, *column, coder);
      } else if (setting != nullptr && file.has(setting->name)) {
        add_labels(file, *setting, coder);
      } else {
        for (std::uint64_t row = 0; row < file.rows(); ++row) coder.add_none();
      }
    }
  }
  return std::move(coder).take();
}

std::string RunRows::metadata(std::size_t run, const std::string& name) const {
  return runs_[run].files.front().metadata(name);
}

engine::Mistake unknown_column(const RunRows& rows, std::string_view written,
                               const engine::Location& where) {
  std::vector<std::string> names;
  for (const Column& column : rows.columns()) names.push_back(column.name);
  const std::vector<std::string> likely = sweep::likely(written, names);
  return {where, "there is no column '" + std::string(written) + "'",
          likely.empty() ? "'llmsweep describe' lists the columns" : sweep::did_you_mean(likely)};
}

bool is_number(const Column& column) { return column.type != ColumnType::text; }

std::string axis_name(std::string_view column) {
  return std::string(column.starts_with(kAxisPrefix) ? column.substr(kAxisPrefix.size()) : column);
}

}  // namespace tools
