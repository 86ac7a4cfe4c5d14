// How a row of a table beside points is written: its columns, and its values in their order. Rows with a
// field list need nothing more; the kernels table, which writes ratios, has its own in kernel_format.h.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/units.h"
#include "results/schema.h"

namespace results {

// Numbers take 64 bits while a row waits to be written; names (by their place in the list) and booleans
// take a byte.
template <class T>
constexpr bool kIsNumber = !std::is_same_v<T, bool> && !engine::NamedEnum<T>;

template <class T>
std::uint64_t bits_of(const T& value) {
  if constexpr (engine::IsQuantity<T>) {
    return std::bit_cast<std::uint64_t>(value.value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);
  }
}

template <class T>
T value_of(std::uint64_t bits) {
  if constexpr (engine::IsQuantity<T> || std::is_same_v<T, double>) {
    return T{std::bit_cast<double>(bits)};
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
Column field_column(std::string_view name, std::string_view meaning) {
  Column column{
      .name = std::string(name), .role = ColumnRole::result, .description = std::string(meaning)};
  if constexpr (engine::IsQuantity<T>) {
    constexpr engine::Unit unit = engine::UnitOf<T>::unit;
    static_assert(unit.per_base == 1, "rows are written as they are");
    column.name = with_suffix(name, unit);
    column.unit = unit.symbol;
    column.nullable = true;
  } else if constexpr (std::is_same_v<T, bool>) {
    column.type = ColumnType::boolean;
  } else if constexpr (engine::NamedEnum<T>) {
    static constexpr auto names = enum_names(T{});
    column.type = ColumnType::text;
    column.names = names;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    column.type = ColumnType::int64;
  }
  return column;
}

template <class Row>
struct RowFormat {
  static std::vector<Column> columns() {
    std::vector<Column> columns;
    const Row none;
    Row::fields(none, [&]<class T>(std::string_view name, const T&, std::string_view meaning) {
      columns.push_back(field_column<T>(name, meaning));
    });
    return columns;
  }

  // visit(value), one a column.
  template <class Visit>
  static void values(const Row& row, Visit&& visit) {
    Row::fields(row,
                [&visit](std::string_view, const auto& value, std::string_view) { visit(value); });
  }

  // The row of these values.
  static Row row(const std::uint64_t* bits) {
    Row row;
    Row::fields(row, [&bits]<class T>(std::string_view, T& value, std::string_view) {
      value = value_of<T>(*bits++);
    });
    return row;
  }
};

}  // namespace results
