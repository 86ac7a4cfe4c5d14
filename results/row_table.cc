#include "results/row_table.h"

#include <bit>
#include <string_view>
#include <type_traits>

#include "engine/base/enum_names.h"
#include "engine/outcome.h"

namespace results {
namespace {

// Every value as 64 bits: of an integer or double, or the number of a name.
using FieldBits = std::vector<std::uint64_t>;

// Before the fields come `index` and `key`.
constexpr std::size_t kFirstField = 2;

template <class T>
std::uint64_t bits_of(const T& value) {
  if constexpr (engine::IsQuantity<T>) {
    return std::bit_cast<std::uint64_t>(value.value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return std::uint64_t(value);
  }
}

template <class T>
T value_of(std::uint64_t bits) {
  if constexpr (engine::IsQuantity<T> || std::is_same_v<T, double>) {
    return T{std::bit_cast<double>(bits)};
  } else {
    return T(bits);
  }
}

template <class T>
ColumnPages field_pages(const Column& column, const FieldBits& bits) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<std::uint8_t> flags(bits.begin(), bits.end());
    return boolean_pages(flags);
  } else if constexpr (engine::NamedEnum<T>) {
    static constexpr auto names = enum_names(T{});
    const std::vector<std::int8_t> codes(bits.begin(), bits.end());
    return text_pages(column, codes, names);
  } else {
    return number_pages(column, bits);
  }
}

template <class T>
FieldBits field_bits(const Column& column, const ParquetReader& file) {
  if constexpr (std::is_same_v<T, bool>) {
    const auto flags = file.booleans(column.name);
    return {flags.begin(), flags.end()};
  } else if constexpr (engine::NamedEnum<T>) {
    static constexpr auto names = enum_names(T{});
    const auto codes = file.codes(column.name, names.data(), names.size());
    return {codes.begin(), codes.end()};
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    const auto whole = file.integers(column.name);
    return {whole.begin(), whole.end()};
  } else {
    FieldBits bits;
    for (const double number : file.numbers(column.name)) bits.push_back(bits_of(number));
    return bits;
  }
}

}  // namespace

template <class Row>
std::vector<ColumnPages> row_pages(const std::vector<Column>& columns, const PartRows& part) {
  std::vector<std::uint64_t> index;
  std::vector<engine::Key> key;
  std::vector<std::uint32_t> count;
  std::vector<FieldBits> fields(columns.size() - kFirstField);
  for (const ChunkBuffer* chunk : part.chunks) {
    const DetailRows<Row>& details = chunk->details<Row>();
    index.insert(index.end(), chunk->indices(), chunk->indices() + chunk->rows());
    key.insert(key.end(), chunk->keys(), chunk->keys() + chunk->rows());
    count.insert(count.end(), details.counts.begin(), details.counts.end());
    for (const Row& row : details.rows) {
      auto field = fields.begin();
      Row::fields(row, [&field](std::string_view, const auto& value, std::string_view) {
        (field++)->push_back(bits_of(value));
      });
    }
  }
  std::vector<ColumnPages> pages;
  pages.push_back(repeated_numbers(index, count));
  pages.push_back(repeated_keys(key, count));
  const Row none;
  Row::fields(none, [&]<class T>(std::string_view, const T&, std::string_view) {
    const std::size_t at = pages.size();
    pages.push_back(field_pages<T>(columns[at], fields[at - kFirstField]));
  });
  return pages;
}

template <class Row>
std::vector<Row> read_rows(const std::vector<Column>& columns, const ParquetReader& file) {
  std::vector<FieldBits> fields;
  const Row none;
  Row::fields(none, [&]<class T>(std::string_view, const T&, std::string_view) {
    fields.push_back(field_bits<T>(columns[fields.size() + kFirstField], file));
  });
  std::vector<Row> rows(file.rows());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto field = fields.begin();
    Row::fields(rows[i], [&field, i]<class T>(std::string_view, T& value, std::string_view) {
      value = value_of<T>((*field++)[i]);
    });
  }
  return rows;
}

template std::vector<ColumnPages> row_pages<engine::RequestRow>(const std::vector<Column>&,
                                                                const PartRows&);
template std::vector<ColumnPages> row_pages<engine::TimelineRow>(const std::vector<Column>&,
                                                                 const PartRows&);
template std::vector<engine::RequestRow> read_rows<engine::RequestRow>(const std::vector<Column>&,
                                                                       const ParquetReader&);
template std::vector<engine::TimelineRow> read_rows<engine::TimelineRow>(const std::vector<Column>&,
                                                                         const ParquetReader&);

}  // namespace results
