#include "results/parquet_file.h"

#include <arrow/api.h>
#include <arrow/config.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "engine/base/check.h"

namespace results {
namespace {

// Level 1 is within a few per cent of level 3 in size on our columns, at half its time
// (tests/bench/sink_bench.cc).
constexpr int kZstdLevel = 1;
// A file is one row group and small; a dictionary must never be given up half way through it.
constexpr std::int64_t kDictionaryLimit = 64 << 20;
constexpr std::int64_t kPageBytes = 1 << 20;
constexpr std::int64_t kBatchRows = 16 << 10;

void must(const arrow::Status& status) {
  // In memory nothing can fail but memory itself or our own use of the library.
  engine::check(status.ok(), status.ToString());
}

template <class T>
T must(arrow::Result<T> result) {
  must(result.status());
  return std::move(result).ValueUnsafe();
}

std::shared_ptr<arrow::DataType> arrow_type(ColumnType type) {
  switch (type) {
    case ColumnType::int64:
      return arrow::int64();
    case ColumnType::float64:
      return arrow::float64();
    case ColumnType::boolean:
      return arrow::boolean();
    case ColumnType::text:
      return arrow::utf8();
  }
  return arrow::null();
}

std::shared_ptr<arrow::Schema> arrow_schema(const std::vector<Column>& columns,
                                            const Metadata& metadata) {
  arrow::FieldVector fields;
  for (const Column& column : columns) {
    auto about = std::make_shared<arrow::KeyValueMetadata>();
    if (!column.unit.empty()) about->Append("unit", column.unit);
    about->Append("description", column.description);
    about->Append("role", std::string(engine::name_of(column.role)));
    fields.push_back(arrow::field(column.name, arrow_type(column.type), column.nullable, about));
  }
  auto about = std::make_shared<arrow::KeyValueMetadata>();
  for (const auto& [name, value] : metadata) about->Append(name, value);
  return arrow::schema(fields, about);
}

std::shared_ptr<parquet::WriterProperties> properties(const std::vector<Column>& columns,
                                                      const std::vector<Encoding>& encodings,
                                                      std::int64_t rows) {
  parquet::WriterProperties::Builder builder;
  builder.compression(parquet::Compression::ZSTD)
      ->compression_level(kZstdLevel)
      ->dictionary_pagesize_limit(kDictionaryLimit)
      ->data_pagesize(kPageBytes)
      ->write_batch_size(kBatchRows)
      ->max_row_group_length(std::max<std::int64_t>(rows, 1))
      ->created_by("llmsweep");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    if (encodings[i] != Encoding::dictionary) builder.disable_dictionary(column.name);
    if (encodings[i] == Encoding::delta) {
      builder.encoding(column.name, parquet::Encoding::DELTA_BINARY_PACKED);
    }
    if (!column.has_range) builder.disable_statistics(column.name);
  }
  return builder.build();
}

// Until Arrow 18 a row group was told its length.
template <class Writer>
arrow::Status new_row_group(Writer& writer, std::int64_t rows) {
  if constexpr (requires { writer.NewRowGroup(rows); }) {
    return writer.NewRowGroup(rows);
  } else {
    return writer.NewRowGroup();
  }
}

}  // namespace

ParquetFormat::ParquetFormat(std::vector<Column> columns, const Metadata& metadata)
    : columns_(std::move(columns)), schema_(arrow_schema(columns_, metadata)) {}

ParquetFormat::~ParquetFormat() = default;

FileBytes ParquetFormat::write(const std::vector<std::shared_ptr<arrow::Array>>& arrays,
                               const std::vector<Encoding>& encodings) const {
  engine::check(arrays.size() == columns_.size() && encodings.size() == columns_.size(),
                "an array and an encoding for every column");
  const std::int64_t rows = arrays.front()->length();
  const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  auto sink = must(arrow::io::BufferOutputStream::Create(1 << 20));
  auto writer = must(parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), sink,
                                                      properties(columns_, encodings, rows),
                                                      arrow_properties));
  must(new_row_group(*writer, rows));
  for (const auto& array : arrays) must(writer->WriteColumnChunk(*array));
  must(writer->Close());
  auto buffer = must(sink->Finish());
  const std::string_view bytes(reinterpret_cast<const char*>(buffer->data()),
                               std::size_t(buffer->size()));
  return {.bytes = bytes, .owner = std::move(buffer)};
}

std::string arrow_version() { return ARROW_VERSION_STRING; }

}  // namespace results
