#include "tests/support/run_tables.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "results/reader.h"

namespace tests {
namespace {

void must(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

std::string cell(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) return "null";
  switch (array.type_id()) {
    case arrow::Type::INT64:
      return std::to_string(static_cast<const arrow::Int64Array&>(array).Value(row));
    case arrow::Type::DOUBLE: {
      char text[64];
      std::snprintf(text, sizeof text, "%a",
                    static_cast<const arrow::DoubleArray&>(array).Value(row));
      return text;
    }
    case arrow::Type::BOOL:
      return static_cast<const arrow::BooleanArray&>(array).Value(row) ? "true" : "false";
    default:
      return "'" + static_cast<const arrow::StringArray&>(array).GetString(row) + "'";
  }
}

}  // namespace

std::vector<std::string> table_rows(const std::filesystem::path& folder, const std::string& table) {
  std::vector<std::pair<std::int64_t, std::string>> rows;
  for (const auto& file : results::table_files(folder, table)) {
    auto source = arrow::io::ReadableFile::Open(file.string()).ValueOrDie();
    parquet::arrow::FileReaderBuilder builder;
    must(builder.Open(source));
    auto reader = builder.Build().ValueOrDie();
    std::shared_ptr<arrow::Schema> schema;
    must(reader->GetSchema(&schema));
    const std::size_t first = rows.size();
    for (int c = 0; c < schema->num_fields(); ++c) {
      std::shared_ptr<arrow::ChunkedArray> column;
      must(reader->ReadColumn(c, &column));
      rows.resize(first + std::size_t(column->length()));
      std::size_t at = first;
      for (const auto& chunk : column->chunks()) {
        for (std::int64_t i = 0; i < chunk->length(); ++i, ++at) {
          if (c == 0) rows[at].first = static_cast<const arrow::Int64Array&>(*chunk).Value(i);
          rows[at].second += schema->field(c)->name() + "=" + cell(*chunk, i) + " ";
        }
      }
    }
  }
  // Stable: the kernels of a point keep their order.
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  std::vector<std::string> texts;
  for (auto& row : rows) texts.push_back(std::move(row.second));
  return texts;
}

std::vector<std::int64_t> table_indices(const std::filesystem::path& folder,
                                        const std::string& table) {
  std::vector<std::int64_t> all;
  for (const auto& file : results::table_files(folder, table)) {
    const auto some = results::ParquetReader(file).integers("index");
    all.insert(all.end(), some.begin(), some.end());
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace tests
