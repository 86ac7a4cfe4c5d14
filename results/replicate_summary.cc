#include "results/replicate_summary.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/random.h"
#include "results/chunk_buffer.h"
#include "results/durable_file.h"
#include "results/mean_interval.h"
#include "results/page_encoding.h"
#include "results/parquet_file.h"
#include "results/reader.h"
#include "results/run_folder.h"

namespace results {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kReplicate = "replicate";
constexpr std::string_view kReplicateLabel = "axis.replicate";

// Every point of a run. Columns are read whole, one at a time: memory is a few numbers a point.
class AllPoints {
 public:
  AllPoints(const fs::path& run, const RunSummary& summary) {
    for (const PartRecord& part : summary.parts) {
      const std::string& name = part.files[Table::points].name;
      if (!name.empty()) files_.emplace_back(run / name);
    }
    for (const ParquetReader& file : files_) rows_ += file.rows();
  }

  std::size_t rows() const { return rows_; }
  bool empty() const { return files_.empty(); }
  std::vector<Column> columns() const { return files_.front().columns(); }
  std::string metadata(const std::string& name) const { return files_.front().metadata(name); }

  template <class Read>
  auto column(Read read) const {
    decltype(read(files_.front())) all;
    for (const ParquetReader& file : files_) {
      auto some = read(file);
      all.insert(all.end(), std::make_move_iterator(some.begin()),
                 std::make_move_iterator(some.end()));
    }
    return all;
  }
  std::vector<double> numbers(const std::string& name) const {
    return column([&name](const ParquetReader& file) { return file.numbers(name); });
  }
  std::vector<std::int64_t> integers(const std::string& name) const {
    return column([&name](const ParquetReader& file) { return file.integers(name); });
  }
  std::vector<std::uint8_t> booleans(const std::string& name) const {
    return column([&name](const ParquetReader& file) { return file.booleans(name); });
  }
  std::vector<std::optional<std::string>> texts(const std::string& name) const {
    return column([&name](const ParquetReader& file) { return file.texts(name); });
  }
  std::vector<engine::Key> keys() const {
    return column([](const ParquetReader& file) { return file.keys(); });
  }

 private:
  std::vector<ParquetReader> files_;
  std::size_t rows_ = 0;
};

// Rows by design, designs in the order of their first index, replicates of one in the order of theirs.
struct Designs {
  std::vector<std::size_t> rows;
  std::vector<std::size_t> ends;  // of each design in `rows`

  std::size_t size() const { return ends.size(); }
  std::span<const std::size_t> of(std::size_t design) const {
    const std::size_t begin = design == 0 ? 0 : ends[design - 1];
    return std::span(rows).subspan(begin, ends[design] - begin);
  }
  std::size_t first(std::size_t design) const { return of(design).front(); }
};

// A digest a row of every setting but the replicate.
std::vector<engine::Key> design_digests(const AllPoints& points) {
  std::vector<engine::Key> digests(points.rows());
  const auto mix = [&digests](std::size_t row, std::uint64_t value) {
    engine::Key& digest = digests[row];
    digest.high = engine::mixed_seed(digest.high, value);
    digest.low = engine::mixed_seed(~digest.low, value);
  };
  for (const Column& column : points.columns()) {
    if (column.role != ColumnRole::setting || column.name == kReplicate) continue;
    if (column.type == ColumnType::text) {
      const auto values = points.texts(column.name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        mix(i, values[i] ? XXH3_64bits(values[i]->data(), values[i]->size()) : 0);
      }
    } else if (column.type == ColumnType::boolean) {
      const auto values = points.booleans(column.name);
      for (std::size_t i = 0; i < values.size(); ++i) mix(i, values[i]);
    } else {
      const auto values = points.numbers(column.name);
      for (std::size_t i = 0; i < values.size(); ++i)
        mix(i, std::bit_cast<std::uint64_t>(values[i]));
    }
  }
  return digests;
}

Designs designs_of(const AllPoints& points) {
  const std::vector<std::int64_t> index = points.integers("index");
  const std::vector<engine::Key> digests = design_digests(points);
  std::vector<std::size_t> by_index(index.size());
  std::iota(by_index.begin(), by_index.end(), std::size_t{0});
  std::ranges::sort(by_index, {}, [&index](std::size_t row) { return index[row]; });
  std::map<engine::Key, std::size_t> numbers;
  std::vector<std::vector<std::size_t>> members;
  for (const std::size_t row : by_index) {
    const auto [found, added] = numbers.try_emplace(digests[row], members.size());
    if (added) members.emplace_back();
    members[found->second].push_back(row);
  }
  Designs designs;
  for (const std::vector<std::size_t>& rows : members) {
    designs.rows.insert(designs.rows.end(), rows.begin(), rows.end());
    designs.ends.push_back(designs.rows.size());
  }
  return designs;
}

// The columns of the summary and their pages, side by side.
class Summary {
 public:
  Summary(const AllPoints& points, const Designs& designs) : points_(points), designs_(designs) {}

  void add(const Column& column) {
    switch (column.role) {
      case ColumnRole::metric:
        return add_metric(column);
      case ColumnRole::result:
        if (column.type == ColumnType::boolean) return add_any(column);
        return column.type == ColumnType::text ? add_agreed(column) : add_metric(column);
      case ColumnRole::identity:
      case ColumnRole::label:
      case ColumnRole::setting:
      case ColumnRole::provenance:
        return add_first(column);
    }
  }

  void add_counts() {
    std::vector<std::uint64_t> counts;
    for (std::size_t d = 0; d < designs_.size(); ++d) counts.push_back(designs_.of(d).size());
    add_numbers({.name = "replicates",
                 .type = ColumnType::int64,
                 .role = ColumnRole::result,
                 .description = "points of this design, each with its own random numbers"},
                counts);
  }

  FileBytes file(const std::string& run_yaml) const {
    const ParquetFormat format(columns_, {{"llmsweep.table", "summary"},
                                          {"llmsweep.run_yaml", run_yaml},
                                          {"llmsweep.arrow_version", arrow_version()}});
    return format.write(pages_, designs_.size());
  }

 private:
  void add_numbers(Column column, const std::vector<std::uint64_t>& bits) {
    pages_.push_back(number_pages(column, bits));
    columns_.push_back(std::move(column));
  }

  // What the first replicate has, and all others too (or its own index and key).
  void add_first(const Column& column) {
    if (column.name == "key") {
      const auto values = points_.keys();
      std::vector<engine::Key> keys;
      for (std::size_t d = 0; d < designs_.size(); ++d) keys.push_back(values[designs_.first(d)]);
      pages_.push_back(key_pages(keys));
      columns_.push_back(column);
    } else if (column.type == ColumnType::text) {
      add_agreed(column);
    } else if (column.type == ColumnType::boolean) {
      add_any(column);
    } else {
      std::vector<std::uint64_t> bits;
      if (column.type == ColumnType::int64) {
        const auto values = points_.integers(column.name);
        for (std::size_t d = 0; d < designs_.size(); ++d) {
          bits.push_back(std::uint64_t(values[designs_.first(d)]));
        }
      } else {
        const auto values = points_.numbers(column.name);
        for (std::size_t d = 0; d < designs_.size(); ++d) {
          bits.push_back(std::bit_cast<std::uint64_t>(values[designs_.first(d)]));
        }
      }
      add_numbers(column, bits);
    }
  }

  // A text all replicates have, else null.
  void add_agreed(Column column) {
    const auto values = points_.texts(column.name);
    TextPool pool;
    std::uint32_t last = 0;
    std::vector<std::int32_t> codes;
    for (std::size_t d = 0; d < designs_.size(); ++d) {
      const auto rows = designs_.of(d);
      const auto& first = values[rows.front()];
      const bool agreed =
          first && std::ranges::all_of(rows, [&](std::size_t row) { return values[row] == first; });
      codes.push_back(agreed ? std::int32_t(pool.code(*first, last)) : -1);
    }
    column.nullable = column.nullable || std::ranges::find(codes, -1) != codes.end();
    const std::vector<std::string_view> texts(pool.texts().begin(), pool.texts().end());
    pages_.push_back(text_pages(column, codes, texts));
    columns_.push_back(std::move(column));
  }

  // Whether any replicate says so.
  void add_any(const Column& column) {
    const auto values = points_.booleans(column.name);
    std::vector<std::uint8_t> flags;
    for (std::size_t d = 0; d < designs_.size(); ++d) {
      const bool any = std::ranges::any_of(designs_.of(d),
                                           [&values](std::size_t row) { return values[row] == 1; });
      const bool none = values[designs_.first(d)] == kNullBoolean;
      flags.push_back(none ? kNullBoolean : std::uint8_t(any));
    }
    pages_.push_back(boolean_pages(column, flags));
    columns_.push_back(column);
  }

  // The mean under the metric's own name, so that a plot of points is one of designs too.
  void add_metric(const Column& column) {
    const auto values = points_.numbers(column.name);
    std::vector<std::uint64_t> mean, low, high;
    std::vector<double> present;
    bool any = false;
    for (std::size_t d = 0; d < designs_.size(); ++d) {
      present.clear();
      for (const std::size_t row : designs_.of(d)) {
        if (!std::isnan(values[row])) present.push_back(values[row]);
      }
      any = any || !present.empty();
      const MeanInterval interval = mean_interval(present);
      mean.push_back(std::bit_cast<std::uint64_t>(interval.mean));
      low.push_back(std::bit_cast<std::uint64_t>(interval.low));
      high.push_back(std::bit_cast<std::uint64_t>(interval.high));
    }
    add_numbers(column, mean);
    if (!any) return;
    Column end = column;
    end.name = column.name + "_ci_low";
    end.description = "lower end of the 95% interval of the mean: " + column.description;
    add_numbers(end, low);
    end.name = column.name + "_ci_high";
    end.description = "upper end of the 95% interval of the mean: " + column.description;
    add_numbers(end, high);
  }

  const AllPoints& points_;
  const Designs& designs_;
  std::vector<Column> columns_;
  std::vector<ColumnPages> pages_;
};

}  // namespace

engine::Result<SummaryReport> write_replicate_summary(const fs::path& run, const fs::path& file) {
  const auto known = summarise(run);
  if (!known.ok()) return known.mistakes();
  const AllPoints points(run, *known);
  if (points.empty()) return without_points(run, *known);
  const Designs designs = designs_of(points);
  Summary summary(points, designs);
  bool counted = false;
  for (const Column& column : points.columns()) {
    if (column.name == kReplicate || column.name == kReplicateLabel) continue;
    // The count stands between what a design is and what came of it.
    if (!counted && column.role == ColumnRole::result) summary.add_counts();
    counted = counted || column.role == ColumnRole::result;
    summary.add(column);
  }
  remove_left_over(file);
  write_durably(file, summary.file(points.metadata("llmsweep.run_yaml")).bytes);
  SummaryReport report{.points = points.rows(), .designs = designs.size()};
  report.fewest = designs.rows.size();
  for (std::size_t d = 0; d < designs.size(); ++d) {
    report.fewest = std::min(report.fewest, designs.of(d).size());
    report.most = std::max(report.most, designs.of(d).size());
  }
  return report;
}

}  // namespace results
