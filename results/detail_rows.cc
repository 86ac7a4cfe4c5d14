#include "results/detail_rows.h"

namespace results {
namespace {

bool is_number(const Column& column) {
  return column.type == ColumnType::float64 || column.type == ColumnType::int64;
}

constexpr std::size_t kFewestRows = 64;

}  // namespace

DetailRows::DetailRows(const std::vector<Column>& columns)
    : numbers_(std::size_t(std::ranges::count_if(columns, is_number))),
      codes_(columns.size() - std::size_t(std::ranges::count_if(columns, is_number))) {}

void DetailRows::grow(std::size_t least) {
  capacity_ = std::max({least, 2 * capacity_, kFewestRows});
  numbers_.resize(capacity_ + kColumnSlack, rows_);
  codes_.resize(capacity_ + kColumnSlack, rows_);
}

void DetailRows::clear() {
  rows_ = 0;
  counts_.clear();
}

std::size_t DetailRows::bytes() const {
  return counts_.capacity() * sizeof(std::uint32_t) + numbers_.bytes() + codes_.bytes();
}

void DetailRows::trim() {
  if (2 * counts_.size() < counts_.capacity()) counts_.shrink_to_fit();
  if (2 * rows_ >= capacity_) return;
  capacity_ = rows_;
  numbers_.resize(rows_, rows_);
  codes_.resize(rows_, rows_);
}

}  // namespace results
