// Columns of one type in one piece of memory, each with room for the same number of values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

namespace results {

// New room is not cleared, since every column of a row is written.
template <class T>
class ColumnBlock {
 public:
  explicit ColumnBlock(std::size_t columns) : columns_(columns) {}

  T* column(std::size_t number) { return values_.get() + number * stride_; }
  const T* column(std::size_t number) const { return values_.get() + number * stride_; }
  // From a value to the one beside it in the next column.
  std::size_t stride() const { return stride_; }
  std::size_t bytes() const { return columns_ * stride_ * sizeof(T); }

  // Room for `stride` values a column; the first `rows` of each are kept.
  void resize(std::size_t stride, std::size_t rows) {
    auto values = std::make_unique_for_overwrite<T[]>(columns_ * stride);
    for (std::size_t i = 0; i < columns_; ++i) {
      std::copy_n(column(i), rows, values.get() + i * stride);
    }
    values_ = std::move(values);
    stride_ = stride;
  }

 private:
  std::size_t columns_ = 0;
  std::size_t stride_ = 0;
  std::unique_ptr<T[]> values_;
};

// A cache line of slack after each column: columns a power of two apart would all compete for the
// same few cache sets while a row is written across them.
constexpr std::size_t kColumnSlack = 8;

}  // namespace results
