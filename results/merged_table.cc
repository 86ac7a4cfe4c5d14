#include "results/merged_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "results/failure.h"
#include "results/page_encoding.h"
#include "results/reader.h"

namespace results {
namespace {

bool same(const std::vector<Column>& one, const std::vector<Column>& other) {
  return std::ranges::equal(one, other, [](const Column& a, const Column& b) {
    return a.name == b.name && a.type == b.type && a.nullable == b.nullable;
  });
}

class MergedTable {
 public:
  explicit MergedTable(const std::vector<std::filesystem::path>& files) {
    for (const auto& file : files) readers_.emplace_back(file);
    columns_ = readers_.front().columns();
    for (const ParquetReader& reader : readers_) {
      if (!same(reader.columns(), columns_)) {
        throw Failure(reader.path().string() + " has other columns than " +
                      readers_.front().path().string());
      }
    }
    // Rows of one point stay in their order.
    const std::vector<std::int64_t> index =
        joined<std::int64_t>([](const ParquetReader& file) { return file.integers("index"); });
    order_.resize(index.size());
    std::iota(order_.begin(), order_.end(), 0U);
    std::ranges::stable_sort(order_, {}, [&index](std::uint32_t row) { return index[row]; });
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const bool begins = i == 0 || index[order_[i]] != index[order_[i - 1]];
      if (begins) firsts_.push_back(order_[i]), counts_.push_back(0);
      ++counts_.back();
    }
  }

  FileBytes bytes() const {
    std::vector<ColumnPages> pages;
    for (const Column& column : columns_) pages.push_back(pages_of(column));
    return ParquetFormat(columns_, metadata()).write(pages, order_.size());
  }

 private:
  // As in the first file, with the commits of all builds that made rows.
  Metadata metadata() const {
    constexpr const char* kCommit = "llmsweep.program_commit";
    std::set<std::string> commits;
    for (const ParquetReader& reader : readers_) commits.insert(reader.metadata(kCommit));
    Metadata about = readers_.front().metadata();
    const auto commit = std::ranges::find(about, kCommit, &Metadata::value_type::first);
    if (commit != about.end()) commit->second = fmt::format("{}", fmt::join(commits, ", "));
    return about;
  }

  // A column of all files, one after another; read(file) gives that of one.
  template <class T, class Read>
  std::vector<T> joined(Read read) const {
    std::vector<T> all;
    for (const ParquetReader& reader : readers_) {
      const std::vector<T> one = read(reader);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  template <class Out, class T>
  std::vector<Out> in_order(const std::vector<T>& values) const {
    std::vector<Out> sorted;
    sorted.reserve(values.size());
    for (const std::uint32_t row : order_) sorted.push_back(std::bit_cast<Out>(values[row]));
    return sorted;
  }

  // `index` and `key` are said once a point, however many rows it has.
  bool has_runs() const { return counts_.size() < order_.size(); }
  template <class Out, class T>
  std::vector<Out> of_points(const std::vector<T>& values) const {
    std::vector<Out> once;
    for (const std::uint32_t row : firsts_) once.push_back(std::bit_cast<Out>(values[row]));
    return once;
  }

  ColumnPages index_column(const Column& column) const {
    const auto values =
        joined<std::int64_t>([](const ParquetReader& file) { return file.integers("index"); });
    const auto once = of_points<std::uint64_t>(values);
    return has_runs() ? repeated_numbers(once, counts_) : number_pages(column, once);
  }

  ColumnPages key_column() const {
    const auto values = joined<engine::Key>([](const ParquetReader& file) { return file.keys(); });
    const auto once = of_points<engine::Key>(values);
    return has_runs() ? repeated_keys(once, counts_) : key_pages(once);
  }

  ColumnPages pages_of(const Column& column) const {
    const std::string& name = column.name;
    if (name == "index") return index_column(column);
    if (name == "key") return key_column();
    const auto all = [&]<class T>(std::vector<T> (ParquetReader::*read)(std::string_view) const) {
      return joined<T>([&](const ParquetReader& file) { return (file.*read)(name); });
    };
    switch (column.type) {
      case ColumnType::int64:
        return number_pages(column, in_order<std::uint64_t>(all(&ParquetReader::integers)));
      case ColumnType::float64:
        return number_pages(column, in_order<std::uint64_t>(all(&ParquetReader::numbers)));
      case ColumnType::boolean:
        return boolean_pages(column, in_order<std::uint8_t>(all(&ParquetReader::booleans)));
      case ColumnType::text:
        return text_column(column);
    }
    return {};
  }

  ColumnPages text_column(const Column& column) const {
    std::map<std::string, std::int32_t> numbers;
    const auto read = [&](const ParquetReader& file) {
      const CodedTexts texts = file.coded_texts(column.name);
      std::vector<std::int32_t> number;
      for (const std::string& text : texts.names) {
        number.push_back(numbers.try_emplace(text, std::int32_t(numbers.size())).first->second);
      }
      std::vector<std::int32_t> codes;
      codes.reserve(texts.codes.size());
      for (const std::uint32_t code : texts.codes) {
        codes.push_back(code == CodedTexts::kNone ? -1 : number[code]);
      }
      return codes;
    };
    const auto codes = in_order<std::int32_t>(joined<std::int32_t>(read));
    std::vector<std::string_view> names(numbers.size());
    for (const auto& [text, number] : numbers) names[std::size_t(number)] = text;
    return text_pages(column, codes, names);
  }

  std::vector<ParquetReader> readers_;
  std::vector<Column> columns_;
  std::vector<std::uint32_t> order_;   // row i of the merged table is this one of all
  std::vector<std::uint32_t> firsts_;  // the first row of each point, one of all
  std::vector<std::uint32_t> counts_;  // the rows of each point
};

}  // namespace

FileBytes merged_table(const std::vector<std::filesystem::path>& files) {
  return MergedTable(files).bytes();
}

bool same_columns(const std::filesystem::path& one, const std::filesystem::path& other) {
  return same(ParquetReader(one).columns(), ParquetReader(other).columns());
}

}  // namespace results
