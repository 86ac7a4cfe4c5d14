#include "results/parquet_file.h"

#include <arrow/api.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/util/base64.h>
#include <arrow/util/config.h>
#include <parquet/arrow/schema.h>
#include <parquet/column_page.h>
#include <parquet/column_writer.h>
#include <parquet/exception.h>
#include <parquet/file_writer.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/statistics.h>

#include <new>

#include "engine/base/check.h"
#include "engine/base/version.h"

namespace results {
namespace {

// Level 3 makes the figures of a step 3 to 13 per cent smaller and takes 4 to 16 per cent longer.
constexpr int kZstdLevel = 1;
// Constant columns take a few bytes; compressing those would take longer than all the rest of them.
constexpr std::size_t kWorthCompressing = 128;
// A reader that knows nothing of manifests finds flipped bits, too.
constexpr bool kPageChecksums = true;
constexpr std::string_view kMagic = "PAR1";

// Files are encoded by one thread and freed by another. The system's allocator is as fast for the few
// large blocks this takes, gives them back, and is one that sanitizers understand.
arrow::MemoryPool* memory() { return arrow::system_memory_pool(); }

void must(const arrow::Status& status) {
  // In memory nothing can fail but memory itself or our own use of the library.
  if (status.IsOutOfMemory()) throw std::bad_alloc();
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
    if (column.sampled) about->Append("axis", std::string(kSampled));
    fields.push_back(arrow::field(column.name, arrow_type(column.type), column.nullable, about));
  }
  auto about = std::make_shared<arrow::KeyValueMetadata>();
  for (const auto& [name, value] : metadata) about->Append(name, value);
  return arrow::schema(fields, about);
}

std::shared_ptr<arrow::Buffer> view(const PageBytes& bytes) {
  return std::make_shared<arrow::Buffer>(bytes.data(), std::int64_t(bytes.size()));
}

parquet::Encoding::type parquet_encoding(Encoding encoding) {
  switch (encoding) {
    case Encoding::dictionary:
      return parquet::Encoding::RLE_DICTIONARY;
    case Encoding::plain:
      return parquet::Encoding::PLAIN;
  }
  return parquet::Encoding::UNKNOWN;
}

bool worth_compressing(const ColumnPages& pages) {
  return pages.dictionary.size() + pages.data.size() > kWorthCompressing;
}

parquet::EncodedStatistics statistics(const Column& column, const ColumnPages& pages) {
  parquet::EncodedStatistics known;
  // Texts are ordered by unsigned bytes; the footer's older fields for ranges do not know that order
  // and are left out.
  known.set_is_signed(column.type != ColumnType::text);
  known.set_null_count(pages.nulls);
  if (pages.range) {
    known.set_min(pages.range->least);
    known.set_max(pages.range->greatest);
  }
  return known;
}

// Readers look here for writers whose statistics are known to be wrong, and distrust a text in which
// they find no version.
std::string created_by() { return "llmsweep version " + std::string(engine::program_version()); }

using Sink = std::shared_ptr<arrow::io::BufferOutputStream>;

void write_column(const Column& about_column, const ColumnPages& pages, std::size_t rows,
                  const Sink& sink, parquet::ColumnChunkMetaDataBuilder* about) {
  const bool packed = worth_compressing(pages);
  auto writer = parquet::PageWriter::Open(
      sink, packed ? parquet::Compression::ZSTD : parquet::Compression::UNCOMPRESSED, about, -1, -1,
      memory(), false, nullptr, nullptr, kPageChecksums, nullptr, nullptr,
      packed ? arrow::util::CodecOptions{kZstdLevel} : arrow::util::CodecOptions{});
  const bool coded = pages.encoding == Encoding::dictionary;
  if (coded) {
    writer->WriteDictionaryPage(parquet::DictionaryPage(
        view(pages.dictionary), pages.dictionary_values, parquet::Encoding::PLAIN));
  }
  std::shared_ptr<arrow::Buffer> data = view(pages.data);
  if (writer->has_compressor()) {
    std::shared_ptr<arrow::ResizableBuffer> smaller =
        must(arrow::AllocateResizableBuffer(0, memory()));
    writer->Compress(*data, smaller.get());
    data = smaller;
  }
  writer->WriteDataPage(parquet::DataPageV1(
      data, std::int32_t(rows), parquet_encoding(pages.encoding), parquet::Encoding::RLE,
      parquet::Encoding::RLE, std::int64_t(pages.data.size())));
  about->SetStatistics(statistics(about_column, pages));
  writer->Close(coded, false);
}

}  // namespace

struct ParquetFormat::Impl {
  std::vector<Column> columns;
  std::shared_ptr<parquet::SchemaDescriptor> schema;
  std::shared_ptr<const arrow::KeyValueMetadata> metadata;
};

ParquetFormat::ParquetFormat(std::vector<Column> columns, const Metadata& metadata) {
  const auto schema = arrow_schema(columns, metadata);
  std::shared_ptr<parquet::SchemaDescriptor> descriptor;
  must(parquet::arrow::ToParquetSchema(schema.get(), *parquet::default_writer_properties(),
                                       &descriptor));
  // Fields keep their metadata only in a copy of Arrow's own schema.
  auto about = schema->metadata()->Copy();
  const auto serialized = must(arrow::ipc::SerializeSchema(*schema));
  about->Append("ARROW:schema", arrow::util::base64_encode(std::string_view(*serialized)));
  impl_ = std::make_unique<const Impl>(Impl{std::move(columns), descriptor, about});
}

ParquetFormat::~ParquetFormat() = default;
ParquetFormat::ParquetFormat(ParquetFormat&&) noexcept = default;

const std::vector<Column>& ParquetFormat::columns() const { return impl_->columns; }

FileBytes ParquetFormat::write(const std::vector<ColumnPages>& pages, std::size_t rows) const {
  engine::check(pages.size() == impl_->columns.size(), "pages for every column");
  parquet::WriterProperties::Builder builder;
  // Most columns are constant: the few that are not are named.
  builder.compression(parquet::Compression::UNCOMPRESSED)->created_by(created_by());
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (worth_compressing(pages[i])) {
      builder.compression(impl_->columns[i].name, parquet::Compression::ZSTD);
    }
  }
  try {
    auto about = parquet::FileMetaDataBuilder::Make(impl_->schema.get(), builder.build());
    auto sink = must(arrow::io::BufferOutputStream::Create(1 << 20, memory()));
    must(sink->Write(kMagic.data(), std::int64_t(kMagic.size())));
    parquet::RowGroupMetaDataBuilder* group = about->AppendRowGroup();
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < pages.size(); ++i) {
      write_column(impl_->columns[i], pages[i], rows, sink, group->NextColumnChunk());
      bytes += std::int64_t(pages[i].dictionary.size() + pages[i].data.size());
    }
    group->set_num_rows(std::int64_t(rows));
    group->Finish(bytes);
    parquet::WriteFileMetaData(*about->Finish(impl_->metadata), sink.get());
    auto buffer = must(sink->Finish());
    const std::string_view content(reinterpret_cast<const char*>(buffer->data()),
                                   std::size_t(buffer->size()));
    return {.bytes = content, .owner = std::move(buffer)};
  } catch (const parquet::ParquetStatusException& problem) {
    must(problem.status());
  } catch (const parquet::ParquetException& problem) {
    engine::check(false, problem.what());
  }
  return {};
}

std::string arrow_version() { return ARROW_VERSION_STRING; }

}  // namespace results
