// The tables of a run, each a folder of Parquet files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/base/enum_names.h"

namespace results {

enum class Table : std::uint8_t {
  points,    // one row a point
  kernels,   // one row a kernel of a point
  requests,  // one row a request of a served load, where output.requests asks for them
  timeline,  // one row a moment and replica, where output.timeline does
};
constexpr std::array<std::string_view, 4> enum_names(Table) {
  return {"points", "kernels", "requests", "timeline"};
}

constexpr std::size_t kTables = enum_names(Table{}).size();
// In the order in which files become visible: a point that can be seen has all its other rows.
constexpr std::array<Table, kTables> kDetailsFirst = {Table::timeline, Table::requests,
                                                      Table::kernels, Table::points};

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
