#include "results/text_parquet.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>

#include <array>
#include <charconv>
#include <memory>

#include "results/durable_file.h"
#include "results/failure.h"

namespace results {
namespace {

namespace fs = std::filesystem;

template <class Number>
void append_number(Number value, TextColumn& column) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  column.append({text.data(), std::size_t(end - text.data())});
}

// Appends the cells of one chunk; returns false for a type that has no text.
struct AppendCells : arrow::ArrayVisitor {
  TextColumn& column;
  explicit AppendCells(TextColumn& into) : column(into) {}

  template <class Array, class Append>
  arrow::Status each(const Array& array, Append append) {
    for (std::int64_t i = 0; i < array.length(); ++i) {
      if (array.IsNull(i)) {
        column.append("");
      } else {
        append(i);
      }
    }
    return arrow::Status::OK();
  }
  template <class Array>
  arrow::Status numbers(const Array& array) {
    return each(array, [&](std::int64_t i) { append_number(array.Value(i), column); });
  }
  template <class Array>
  arrow::Status texts(const Array& array) {
    return each(array, [&](std::int64_t i) { column.append(array.GetView(i)); });
  }

  arrow::Status Visit(const arrow::Int8Array& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::Int16Array& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::Int32Array& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::Int64Array& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::UInt8Array& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::UInt16Array& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::UInt32Array& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::UInt64Array& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::FloatArray& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::DoubleArray& array) override { return numbers(array); }
  arrow::Status Visit(const arrow::StringArray& array) override { return texts(array); }
  arrow::Status Visit(const arrow::LargeStringArray& array) override { return texts(array); }
  arrow::Status Visit(const arrow::NullArray& array) override {
    return each(array, [](std::int64_t) {});
  }
  arrow::Status Visit(const arrow::BooleanArray& array) override {
    return each(array, [&](std::int64_t i) { column.append(array.Value(i) ? "true" : "false"); });
  }
  arrow::Status Visit(const arrow::DictionaryArray& array) override {
    TextColumn words("");
    AppendCells dictionary(words);
    ARROW_RETURN_NOT_OK(array.dictionary()->Accept(&dictionary));
    return each(array,
                [&](std::int64_t i) { column.append(words[std::size_t(array.GetValueIndex(i))]); });
  }
};

template <class Number>
bool parse(std::string_view cell, Number& value) {
  const auto end = cell.data() + cell.size();
  const auto [stop, error] = std::from_chars(cell.data(), end, value);
  return error == std::errc{} && stop == end;
}

// An Arrow column of the numbers in the cells, or nothing where one of them is none.
template <class Builder, class Number>
std::shared_ptr<arrow::Array> number_array(const TextColumn& column) {
  Builder builder;
  for (std::size_t row = 0; row < column.size(); ++row) {
    Number value{};
    if (column[row].empty()) {
      (void)builder.AppendNull();
    } else if (parse(column[row], value)) {
      (void)builder.Append(value);
    } else {
      return nullptr;
    }
  }
  return builder.null_count() == builder.length() ? nullptr : builder.Finish().ValueOrDie();
}

std::shared_ptr<arrow::Array> text_array(const TextColumn& column) {
  arrow::StringBuilder builder;
  for (std::size_t row = 0; row < column.size(); ++row) {
    const std::string_view cell = column[row];
    (void)(cell.empty() ? builder.AppendNull() : builder.Append(cell));
  }
  return builder.Finish().ValueOrDie();
}

}  // namespace

engine::Result<TextTable> read_text_parquet(const fs::path& file) {
  const auto refuse = [&](const arrow::Status& status) {
    return engine::Mistake{
        {file.string()}, "the file is not a readable Parquet table", status.message()};
  };
  auto source = arrow::io::ReadableFile::Open(file.string());
  if (!source.ok()) return refuse(source.status());
  parquet::arrow::FileReaderBuilder builder;
  arrow::Status status = builder.Open(*source);
  if (!status.ok()) return refuse(status);
  auto reader = builder.Build();
  if (!reader.ok()) return refuse(reader.status());
  std::shared_ptr<arrow::Schema> schema;
  status = (*reader)->GetSchema(&schema);
  if (!status.ok()) return refuse(status);

  TextTable table{.file = file.string()};
  for (int i = 0; i < schema->num_fields(); ++i) {
    TextColumn& column = table.columns.emplace_back(schema->field(i)->name());
    std::shared_ptr<arrow::ChunkedArray> cells;
    status = (*reader)->ReadColumn(i, &cells);
    if (!status.ok()) return refuse(status);
    column.reserve(std::size_t(cells->length()));
    AppendCells append(column);
    for (const auto& chunk : cells->chunks()) {
      status = chunk->Accept(&append);
      if (!status.ok()) {
        return engine::Mistake{{file.string(), 0, i + 1},
                               "column '" + column.name() + "' holds " + chunk->type()->ToString(),
                               "numbers and text can be read"};
      }
    }
  }
  return table;
}

void write_text_parquet(const fs::path& file, const TextTable& table) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const TextColumn& column : table.columns) {
    auto array = number_array<arrow::Int64Builder, std::int64_t>(column);
    if (array == nullptr) array = number_array<arrow::DoubleBuilder, double>(column);
    if (array == nullptr) array = text_array(column);
    fields.push_back(arrow::field(column.name(), array->type()));
    arrays.push_back(array);
  }
  const auto cells = arrow::Table::Make(arrow::schema(fields), arrays);
  auto sink = arrow::io::BufferOutputStream::Create().ValueOrDie();
  const auto properties =
      parquet::WriterProperties::Builder().compression(parquet::Compression::ZSTD)->build();
  const arrow::Status status =
      parquet::arrow::WriteTable(*cells, arrow::default_memory_pool(), sink, 1 << 20, properties);
  if (!status.ok()) throw Failure("cannot write " + file.string() + ": " + status.ToString());
  const auto bytes = sink->Finish().ValueOrDie();
  write_durably(file, std::string_view(*bytes));
}

}  // namespace results
