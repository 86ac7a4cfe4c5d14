#include "results/reader.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/statistics.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "results/failure.h"

namespace results {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& file, const std::string& why) {
  throw Failure("cannot read " + file.string() + ": " + why);
}

// As for writing: blocks cross threads, and sanitizers know this allocator.
arrow::MemoryPool* reader_memory() { return arrow::system_memory_pool(); }

template <class T>
T must(arrow::Result<T> result, const fs::path& file) {
  if (!result.ok()) fail(file, result.status().ToString());
  return std::move(result).ValueUnsafe();
}

std::string value_of(const std::shared_ptr<const arrow::KeyValueMetadata>& metadata,
                     const std::string& name) {
  if (metadata == nullptr) return "";
  auto value = metadata->Get(name);
  return value.ok() ? value.ValueUnsafe() : "";
}

ColumnType column_type(const arrow::DataType& type) {
  switch (type.id()) {
    case arrow::Type::INT64:
      return ColumnType::int64;
    case arrow::Type::DOUBLE:
      return ColumnType::float64;
    case arrow::Type::BOOL:
      return ColumnType::boolean;
    default:
      return ColumnType::text;
  }
}

}  // namespace

struct ParquetReader::Impl {
  fs::path file;
  std::unique_ptr<parquet::arrow::FileReader> reader;
  std::shared_ptr<arrow::Schema> schema;

  static std::unique_ptr<Impl> open(const fs::path& file,
                                    std::shared_ptr<arrow::io::RandomAccessFile> source) {
    auto impl = std::make_unique<Impl>();
    impl->file = file;
    parquet::ReaderProperties properties(reader_memory());
    properties.set_page_checksum_verification(true);
    parquet::arrow::FileReaderBuilder builder;
    const arrow::Status opened =
        builder.memory_pool(reader_memory())->Open(std::move(source), properties);
    if (!opened.ok()) fail(file, opened.ToString());
    builder.properties(coded_texts(*builder.raw_reader()->metadata()->schema()));
    impl->reader = must(builder.Build(), file);
    const arrow::Status read = impl->reader->GetSchema(&impl->schema);
    if (!read.ok()) fail(file, read.ToString());
    return impl;
  }

  // Texts repeat, so they are read as they are written: a list of them, and numbers into it. No two keys
  // are equal.
  static parquet::ArrowReaderProperties coded_texts(const parquet::SchemaDescriptor& schema) {
    parquet::ArrowReaderProperties properties;
    for (int i = 0; i < schema.num_columns(); ++i) {
      const bool is_text = schema.Column(i)->physical_type() == parquet::Type::BYTE_ARRAY;
      properties.set_read_dictionary(i, is_text && schema.Column(i)->name() != "key");
    }
    return properties;
  }

  std::shared_ptr<arrow::ChunkedArray> column(std::string_view name) const {
    const int number = schema->GetFieldIndex(std::string(name));
    if (number < 0) fail(file, "it has no column '" + std::string(name) + "'");
    std::shared_ptr<arrow::ChunkedArray> array;
    const arrow::Status status = reader->ReadColumn(number, &array);
    if (!status.ok()) fail(file, status.ToString());
    return array;
  }

  // Calls take(array) for every piece of a column of this type of array.
  template <class Array, class Take>
  void each_piece(std::string_view name, Take take) const {
    const std::shared_ptr<arrow::ChunkedArray> chunks = column(name);
    for (const auto& chunk : chunks->chunks()) {
      const auto* array = dynamic_cast<const Array*>(chunk.get());
      if (array == nullptr) {
        fail(file, "column '" + std::string(name) + "' holds " + chunk->type()->ToString());
      }
      take(*array);
    }
  }

  // The values of a column of numbers, `none` where they are null.
  template <class Array, class Value>
  std::vector<Value> values(std::string_view name, Value none) const {
    std::vector<Value> all;
    all.reserve(std::size_t(reader->parquet_reader()->metadata()->num_rows()));
    each_piece<Array>(name, [&](const Array& array) {
      if constexpr (requires { array.raw_values(); }) {
        all.insert(all.end(), array.raw_values(), array.raw_values() + array.length());
      } else {
        for (std::int64_t i = 0; i < array.length(); ++i) all.push_back(Value(array.Value(i)));
      }
      if (array.null_count() == 0) return;
      Value* const piece = all.data() + all.size() - array.length();
      for (std::int64_t i = 0; i < array.length(); ++i) {
        if (array.IsNull(i)) piece[i] = none;
      }
    });
    return all;
  }

  // Calls take(names, code) for every row of a column of texts, code -1 where it is null. `names` are of
  // one piece, whose rows come one after another.
  template <class Take>
  void each_text(std::string_view name, Take take) const {
    each_piece<arrow::DictionaryArray>(name, [&](const arrow::DictionaryArray& array) {
      const auto& names = dynamic_cast<const arrow::StringArray&>(*array.dictionary());
      // Parquet's reader counts names in 32 bits; asking the array row by row is four times as slow.
      const auto* codes = dynamic_cast<const arrow::Int32Array*>(array.indices().get());
      if (codes == nullptr) fail(file, "column '" + std::string(name) + "' has too many names");
      const bool whole = codes->null_count() == 0;
      for (std::int64_t i = 0; i < codes->length(); ++i) {
        take(names, whole || !codes->IsNull(i) ? std::int64_t(codes->Value(i)) : -1);
      }
    });
  }
};

ParquetReader::ParquetReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ParquetReader::ParquetReader(const fs::path& file)
    : ParquetReader(Impl::open(
          file, must(arrow::io::ReadableFile::Open(file.string(), reader_memory()), file))) {}
ParquetReader::ParquetReader(const fs::path& file, std::string bytes)
    : ParquetReader(Impl::open(file, arrow::io::BufferReader::FromString(std::move(bytes)))) {}
ParquetReader::~ParquetReader() = default;
ParquetReader::ParquetReader(ParquetReader&&) noexcept = default;

const fs::path& ParquetReader::path() const { return impl_->file; }

std::uint64_t ParquetReader::rows() const {
  return std::uint64_t(impl_->reader->parquet_reader()->metadata()->num_rows());
}

std::vector<std::string> ParquetReader::column_names() const {
  return impl_->schema->field_names();
}

std::vector<Column> ParquetReader::columns() const {
  std::vector<Column> columns;
  for (const auto& field : impl_->schema->fields()) {
    Column column{.name = field->name(),
                  .type = column_type(*field->type()),
                  .unit = value_of(field->metadata(), "unit"),
                  .description = value_of(field->metadata(), "description"),
                  .nullable = field->nullable(),
                  .sampled = value_of(field->metadata(), "axis") == kSampled};
    const auto role = engine::from_name<ColumnRole>(value_of(field->metadata(), "role"));
    if (!role) fail(impl_->file, "column '" + column.name + "' does not say what it is");
    column.role = *role;
    columns.push_back(std::move(column));
  }
  return columns;
}

bool ParquetReader::has(std::string_view column) const {
  return impl_->schema->GetFieldIndex(std::string(column)) >= 0;
}

std::string ParquetReader::metadata(const std::string& name) const {
  return value_of(impl_->schema->metadata(), name);
}

std::vector<std::pair<std::string, std::string>> ParquetReader::metadata() const {
  std::vector<std::pair<std::string, std::string>> ours;
  if (impl_->schema->metadata() == nullptr) return ours;
  for (const auto& pair : impl_->schema->metadata()->sorted_pairs()) {
    if (pair.first.starts_with("llmsweep.")) ours.push_back(pair);
  }
  return ours;
}

std::string ParquetReader::field_metadata(std::string_view column, const std::string& name) const {
  const auto field = impl_->schema->GetFieldByName(std::string(column));
  return field == nullptr ? "" : value_of(field->metadata(), name);
}

std::vector<double> ParquetReader::numbers(std::string_view column) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto field = impl_->schema->GetFieldByName(std::string(column));
  return field != nullptr && field->type()->id() == arrow::Type::INT64
             ? impl_->values<arrow::Int64Array>(column, kNone)
             : impl_->values<arrow::DoubleArray>(column, kNone);
}

std::vector<std::int64_t> ParquetReader::integers(std::string_view column) const {
  return impl_->values<arrow::Int64Array>(column, kNullInteger);
}

std::vector<std::uint8_t> ParquetReader::booleans(std::string_view column) const {
  return impl_->values<arrow::BooleanArray>(column, kNullBoolean);
}

std::vector<std::optional<std::string>> ParquetReader::texts(std::string_view column) const {
  std::vector<std::optional<std::string>> values;
  values.reserve(rows());
  impl_->each_text(column, [&](const arrow::StringArray& names, std::int64_t code) {
    if (code < 0) {
      values.emplace_back();
    } else {
      values.emplace_back(names.GetString(code));
    }
  });
  return values;
}

CodedTexts ParquetReader::coded_texts(std::string_view column) const {
  CodedTexts texts;
  texts.codes.reserve(rows());
  const arrow::StringArray* last = nullptr;
  std::vector<std::uint32_t> numbers;  // of the chunk's names; files may list some that no row has
  impl_->each_text(column, [&](const arrow::StringArray& names, std::int64_t code) {
    if (last != &names) {
      numbers.assign(std::size_t(names.length()), CodedTexts::kNone);
      last = &names;
    }
    if (code < 0) {
      texts.codes.push_back(CodedTexts::kNone);
      return;
    }
    std::uint32_t& number = numbers[std::size_t(code)];
    if (number == CodedTexts::kNone) {
      number = std::uint32_t(texts.names.size());
      texts.names.push_back(names.GetString(code));
    }
    texts.codes.push_back(number);
  });
  return texts;
}

std::string ParquetReader::constant(std::string_view column) const {
  const int number = impl_->schema->GetFieldIndex(std::string(column));
  const auto metadata = impl_->reader->parquet_reader()->metadata();
  std::string all;
  for (int group = 0; number >= 0 && group < metadata->num_row_groups(); ++group) {
    const auto statistics = metadata->RowGroup(group)->ColumnChunk(number)->statistics();
    if (statistics == nullptr || !statistics->HasMinMax() || !statistics->HasNullCount() ||
        statistics->null_count() != 0) {
      return "";
    }
    const std::string least = statistics->EncodeMin();
    if (least != statistics->EncodeMax() || (group > 0 && least != all)) return "";
    all = least;
  }
  return all;
}

std::vector<engine::Key> ParquetReader::keys() const {
  std::vector<engine::Key> keys;
  keys.reserve(rows());
  impl_->each_piece<arrow::StringArray>("key", [&](const arrow::StringArray& array) {
    for (std::int64_t i = 0; i < array.length(); ++i) {
      const std::string_view hex = array.GetView(i);
      engine::Key key;
      const char* middle = hex.data() + 16;
      const char* end = hex.data() + hex.size();
      if (hex.size() != 32 || std::from_chars(hex.data(), middle, key.high, 16).ptr != middle ||
          std::from_chars(middle, end, key.low, 16).ptr != end) {
        fail(impl_->file, "'" + std::string(hex) + "' is not a key");
      }
      keys.push_back(key);
    }
  });
  return keys;
}

std::vector<std::uint8_t> ParquetReader::codes(std::string_view column,
                                               std::string_view const* names, std::size_t count,
                                               std::optional<std::uint8_t> null_code) const {
  std::vector<std::uint8_t> values;
  values.reserve(rows());
  std::size_t last = 0;  // runs of one name are common
  impl_->each_text(column, [&](const arrow::StringArray& texts, std::int64_t code) {
    if (code < 0 && null_code) return values.push_back(*null_code);
    const std::string_view text = code < 0 ? std::string_view() : texts.GetView(code);
    if (names[last] != text) last = std::size_t(std::find(names, names + count, text) - names);
    if (last == count) {
      fail(impl_->file, "column '" + std::string(column) + "' says '" + std::string(text) +
                            "', which this program does not know");
    }
    values.push_back(std::uint8_t(last));
  });
  return values;
}

std::vector<fs::path> table_files(const fs::path& folder, const std::string& table) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder / table, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("part-") && name.ends_with(".parquet")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace results
