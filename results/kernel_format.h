// How a kernel's row is written: its labels, and between them the figures of its work.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/outcome.h"
#include "results/row_format.h"
#include "results/work_columns.h"

namespace results {

template <>
struct RowFormat<engine::KernelRow> {
  static std::vector<Column> columns() {
    std::vector<Column> columns;
    const engine::KernelRow none;
    add(columns, none.phase, "phase", "part of the work the kernel belongs to");
    add(columns, none.op, "op", "what the operation is for in the model");
    add(columns, none.family, "family", "kernels that share a cost model");
    add(columns, none.algorithm, "algorithm", "how a collective moves its data; none for a kernel");
    engine::Work::fields(none.work, [&]<class T>(const char* name, const T&,
                                                 engine::Written written, const char* description) {
      add(columns, double{}, name, description);
      columns.back().nullable = written == engine::Written::if_known;
      if constexpr (engine::IsQuantity<T>) {
        if (written != engine::Written::as_ratio)
          columns.back().unit = engine::UnitOf<T>::unit.symbol;
      }
    });
    add(columns, none.bound, "bound",
        "the part without which the kernel would take the least time");
    add(columns, none.tier, "tier", "how well founded the time is");
    add(columns, none.extrapolated, "extrapolated",
        "whether the call lies outside what was measured");
    add(columns, none.role, "role",
        "deployment that runs the kernel: main, or one beside it by its name in the sweep");
    return columns;
  }

  template <class Visit>
  static void values(const engine::KernelRow& row, Visit&& visit) {
    visit(row.phase);
    visit(row.op);
    visit(row.family);
    visit(row.algorithm);
    visit_written(row.work, visit);
    visit(row.bound);
    visit(row.tier);
    visit(row.extrapolated);
    visit(row.role);
  }

  static engine::KernelRow row(const std::uint64_t* bits) {
    engine::KernelRow row;
    const auto take = [&bits]<class T>(T& value) { value = value_of<T>(*bits++); };
    take(row.phase);
    take(row.op);
    take(row.family);
    take(row.algorithm);
    std::array<double, kWorkColumns> work;
    for (double& value : work) take(value);
    row.work = work_of(work);
    take(row.bound);
    take(row.tier);
    take(row.extrapolated);
    take(row.role);
    return row;
  }

 private:
  template <class T>
  static void add(std::vector<Column>& columns, const T&, const char* name,
                  const char* description) {
    Column column = field_column<T>(name, description);
    column.name = name;
    column.has_range = column.type != ColumnType::float64;
    columns.push_back(std::move(column));
  }
};

}  // namespace results
