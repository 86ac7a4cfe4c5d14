// How a kernel's row is written.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/outcome.h"
#include "results/row_format.h"

namespace results {

template <>
struct RowFormat<engine::KernelRow> {
  static std::vector<Column> columns() {
    std::vector<Column> columns;
    const auto add = [&columns]<class T>(const T&, const char* name, const char* unit,
                                         const char* description) {
      Column column = field_column<T>(name, description);
      column.name = name;
      column.unit = unit;
      column.nullable = false;
      column.has_range = column.type != ColumnType::float64;
      columns.push_back(std::move(column));
    };
    const engine::KernelRow none;
    add(none.phase, "phase", "", "part of the work the kernel belongs to");
    add(none.op, "op", "", "what the operation is for in the model");
    add(none.family, "family", "", "kernels that share a cost model");
    add(none.algorithm, "algorithm", "", "how a collective moves its data; none for a kernel");
    add(none.calls, "calls", "", "launches on one device");
    add(none.time, "seconds", "s", "time of all calls on one device");
    add(none.low, "low_ratio", "",
        "lower end of the 90% interval of the time, as a multiple of seconds");
    add(none.high, "high_ratio", "",
        "upper end of the 90% interval of the time, as a multiple of seconds");
    add(none.flops, "flops", "FLOP", "arithmetic of all calls on one device");
    add(none.bytes, "bytes", "B", "memory or network traffic of all calls on one device");
    add(none.bound, "bound", "", "the part without which the kernel would take the least time");
    add(none.tier, "tier", "", "how well founded the time is");
    add(none.extrapolated, "extrapolated", "", "outside what was measured");
    return columns;
  }

  template <class Visit>
  static void values(const engine::KernelRow& row, Visit&& visit) {
    visit(row.phase);
    visit(row.op);
    visit(row.family);
    visit(row.algorithm);
    visit(row.calls);
    visit(row.time);
    visit(ratio(row.low, row.time));
    visit(ratio(row.high, row.time));
    visit(row.flops);
    visit(row.bytes);
    visit(row.bound);
    visit(row.tier);
    visit(row.extrapolated);
  }

  static engine::KernelRow row(const std::uint64_t* bits) {
    engine::KernelRow row;
    const auto take = [&bits]<class T>(T& value) { value = value_of<T>(*bits++); };
    take(row.phase);
    take(row.op);
    take(row.family);
    take(row.algorithm);
    take(row.calls);
    take(row.time);
    take(row.low);
    take(row.high);
    take(row.flops);
    take(row.bytes);
    take(row.bound);
    take(row.tier);
    take(row.extrapolated);
    row.low = row.low * row.time.value;
    row.high = row.high * row.time.value;
    return row;
  }

 private:
  // An interval's end beside the time itself. A calibration has one such ratio for a whole family, so the
  // column takes next to nothing, where the ends in seconds would more than double the table; single
  // precision keeps the rounding of a division from making equal ratios different.
  static double ratio(engine::Seconds end, engine::Seconds time) {
    return time.value > 0 ? double(float(end.value / time.value)) : 1;
  }
};

}  // namespace results
