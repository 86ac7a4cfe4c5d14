#include "results/detail_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "results/detail_rows.h"
#include "results/failure.h"
#include "results/kernel_format.h"

namespace results {
namespace {

// Before the columns of the row come `index` and `key`.
constexpr std::size_t kOwnerColumns = 2;

// Calls visit(entry) with the table's entry of engine::kDetailTables.
template <class Visit>
void with_detail(Table table, Visit visit) {
  each_detail([&](Table each, const auto& entry) {
    if (each == table) visit(entry);
  });
}

// One column of a part: the pieces of its chunks one after another.
template <class T, class Piece>
std::vector<T> joined(Table table, const PartRows& part, Piece piece) {
  std::vector<T> values;
  values.reserve(part.rows[table]);
  for (const ChunkBuffer* chunk : part.chunks) {
    const DetailRows& rows = chunk->details(table);
    const auto* from = piece(rows);
    values.insert(values.end(), from, from + rows.rows());
  }
  return values;
}

// Every value of a column of a file as 64 bits: of an integer or double, or the number of a name.
std::vector<std::uint64_t> column_bits(const Column& column, const ParquetReader& file) {
  std::vector<std::uint64_t> bits;
  bits.reserve(file.rows());
  const auto take = [&bits](const auto& values) {
    for (const auto value : values) bits.push_back(bits_of(value));
  };
  // A figure that this version of the program added is absent, as it was for that run.
  if (column.type == ColumnType::float64 && !file.has(column.name)) {
    take(std::vector<double>(file.rows(), std::nan("")));
    return bits;
  }
  switch (column.type) {
    case ColumnType::int64:
      take(file.integers(column.name));
      break;
    case ColumnType::float64:
      take(file.numbers(column.name));
      break;
    case ColumnType::boolean:
      take(file.booleans(column.name));
      break;
    case ColumnType::text:
      take(file.codes(column.name, column.names.data(), column.names.size()));
      break;
  }
  return bits;
}

// Rows lie in the order of their points; `index` says whose they are. Hands the rows [begin, end) of
// point i to take(i, begin, end).
template <class Take>
void by_point(const ParquetReader& file, std::span<const std::int64_t> points, Take take) {
  const std::vector<std::int64_t> index = file.integers("index");
  std::size_t begin = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::size_t end = begin;
    while (end < index.size() && index[end] == points[i]) ++end;
    take(i, begin, end);
    begin = end;
  }
  if (begin != index.size())
    throw Failure(file.path().string() + " has rows of points that are not there");
}

}  // namespace

std::vector<Column> detail_columns(Table table) {
  std::vector<Column> columns;
  add_owner(columns);
  with_detail(table, [&]<class Row>(const engine::DetailTable<Row>&) {
    for (Column& column : RowFormat<Row>::columns()) columns.push_back(std::move(column));
  });
  return columns;
}

std::vector<ColumnPages> detail_pages(Table table, const std::vector<Column>& columns,
                                      const PartRows& part) {
  std::vector<std::uint64_t> index;
  std::vector<engine::Key> key;
  std::vector<std::uint32_t> count;
  for (const ChunkBuffer* chunk : part.chunks) {
    index.insert(index.end(), chunk->indices(), chunk->indices() + chunk->rows());
    key.insert(key.end(), chunk->keys(), chunk->keys() + chunk->rows());
    const std::vector<std::uint32_t>& counts = chunk->details(table).counts();
    count.insert(count.end(), counts.begin(), counts.end());
    count.resize(index.size());
  }
  std::vector<ColumnPages> pages;
  pages.push_back(repeated_numbers(index, count));
  pages.push_back(repeated_keys(key, count));
  std::size_t numbers = 0;
  std::size_t codes = 0;
  for (const Column& column : std::span(columns).subspan(kOwnerColumns)) {
    if (column.type == ColumnType::int64 || column.type == ColumnType::float64) {
      pages.push_back(number_pages(
          column, joined<std::uint64_t>(table, part, [at = numbers++](const DetailRows& rows) {
            return rows.numbers(at);
          })));
      continue;
    }
    const auto piece = [at = codes++](const DetailRows& rows) { return rows.codes(at); };
    if (column.type == ColumnType::boolean) {
      pages.push_back(boolean_pages(column, joined<std::uint8_t>(table, part, piece)));
    } else {
      pages.push_back(text_pages(column, joined<std::int8_t>(table, part, piece), column.names));
    }
  }
  return pages;
}

void read_details(Table table, const ParquetReader& file, std::span<const std::int64_t> points,
                  std::span<engine::Outcome> outcomes) {
  with_detail(table, [&]<class Row>(const engine::DetailTable<Row>& entry) {
    std::vector<std::vector<std::uint64_t>> columns;
    for (const Column& column : RowFormat<Row>::columns()) {
      columns.push_back(column_bits(column, file));
    }
    std::vector<std::uint64_t> bits(columns.size());
    by_point(file, points, [&](std::size_t i, std::size_t begin, std::size_t end) {
      std::vector<Row>& rows = outcomes[i].*entry.rows;
      rows.reserve(end - begin);
      for (std::size_t at = begin; at < end; ++at) {
        for (std::size_t c = 0; c < columns.size(); ++c) bits[c] = columns[c][at];
        rows.push_back(RowFormat<Row>::row(bits.data()));
      }
    });
  });
}

std::size_t detail_bytes(Table table, std::size_t rows) {
  std::size_t bytes = 0;
  with_detail(table,
              [&]<class Row>(const engine::DetailTable<Row>&) { bytes = rows * sizeof(Row); });
  return bytes;
}

}  // namespace results
