// The tables of a run, each a folder of Parquet files: points, then those of engine::kDetailTables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "engine/base/enum_names.h"
#include "engine/outcome.h"

namespace results {

// The tables beside points go by their place in the list: table_named("kernels").
enum class Table : std::uint8_t { points };

constexpr std::size_t kTables = 1 + std::tuple_size_v<decltype(engine::kDetailTables)>;
constexpr std::array<std::string_view, kTables> enum_names(Table) {
  return std::apply(
      [](const auto&... details) {
        return std::array<std::string_view, kTables>{"points", details.name...};
      },
      engine::kDetailTables);
}

consteval Table table_named(std::string_view name) {
  return engine::from_name<Table>(name).value();
}

// In the order in which files become visible: a point that can be seen has all its other rows.
constexpr std::array<Table, kTables> kDetailsFirst = [] {
  std::array<Table, kTables> tables{};
  for (std::size_t i = 0; i < kTables; ++i) tables[i] = static_cast<Table>(kTables - 1 - i);
  return tables;
}();

// Calls visit(table, its entry of engine::kDetailTables) for each table beside points.
template <class Visit>
void each_detail(Visit&& visit) {
  std::size_t number = 0;
  std::apply([&](const auto&... details) { (visit(static_cast<Table>(++number), details), ...); },
             engine::kDetailTables);
}

template <class T>
struct ByTable {
  std::array<T, kTables> values{};

  T& operator[](Table table) { return values[std::size_t(table)]; }
  const T& operator[](Table table) const { return values[std::size_t(table)]; }
  auto begin() { return values.begin(); }
  auto end() { return values.end(); }
  auto begin() const { return values.begin(); }
  auto end() const { return values.end(); }
  bool operator==(const ByTable&) const = default;
};

}  // namespace results
