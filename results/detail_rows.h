// What the points of a chunk have in one table beside points, column by column.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "results/column_block.h"
#include "results/row_format.h"
#include "results/schema.h"

namespace results {

class DetailRows {
 public:
  // `columns` as RowFormat has them.
  explicit DetailRows(const std::vector<Column>& columns);

  // Points come in order; those without rows may be left out.
  template <class Row>
  void add(std::size_t point, const std::vector<Row>& rows) {
    if (rows.empty()) return;
    counts_.resize(point);
    counts_.push_back(std::uint32_t(rows.size()));
    if (rows_ + rows.size() > capacity_) grow(rows_ + rows.size());
    for (const Row& row : rows) {
      std::uint64_t* number = numbers_.column(0) + rows_;
      std::uint8_t* code = codes_.column(0) + rows_;
      RowFormat<Row>::values(row, [&]<class T>(const T& value) {
        if constexpr (kIsNumber<T>) {
          *number = bits_of(value);
          number += numbers_.stride();
        } else {
          *code = static_cast<std::uint8_t>(value);
          code += codes_.stride();
        }
      });
      ++rows_;
    }
  }
  void clear();
  std::size_t bytes() const;
  void trim();

  std::size_t rows() const { return rows_; }
  // By point; points after the last one with rows may be missing.
  const std::vector<std::uint32_t>& counts() const { return counts_; }
  // Columns of numbers, and of names and booleans, each counted from 0.
  const std::uint64_t* numbers(std::size_t column) const { return numbers_.column(column); }
  const std::uint8_t* codes(std::size_t column) const { return codes_.column(column); }

 private:
  void grow(std::size_t least);

  std::size_t rows_ = 0;
  std::size_t capacity_ = 0;
  std::vector<std::uint32_t> counts_;
  ColumnBlock<std::uint64_t> numbers_;
  ColumnBlock<std::uint8_t> codes_;
};

}  // namespace results
