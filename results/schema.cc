#include "results/schema.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "engine/base/check.h"
#include "engine/leaves.h"

namespace results {
namespace {

std::string with_suffix(std::string_view name, const engine::Unit& unit) {
  const std::string suffix = unit.suffix[0] == '\0' ? "" : "_" + std::string(unit.suffix);
  return name.ends_with(suffix) ? std::string(name) : std::string(name) + suffix;
}

struct MetricVisitor {
  std::vector<Metric>& out;

  template <class T>
  void operator()(std::string_view name, const T&, std::string_view meaning) {
    engine::Unit unit;
    if constexpr (engine::IsQuantity<T>) unit = engine::UnitOf<T>::unit;
    out.push_back({with_suffix(name, unit), unit, meaning});
  }
};

ColumnType type_of(engine::LeafKind kind) {
  switch (kind) {
    case engine::LeafKind::quantity:
    case engine::LeafKind::number:
      return ColumnType::float64;
    case engine::LeafKind::integer:
      return ColumnType::int64;
    case engine::LeafKind::boolean:
      return ColumnType::boolean;
    case engine::LeafKind::enumeration:
    case engine::LeafKind::text:
      return ColumnType::text;
  }
  return ColumnType::text;
}

// Settings are written in base units, which for a rent is not what its edge unit (USD/h) says.
std::string base_unit(const engine::Unit& unit) {
  if (unit.per_base == 1) return unit.symbol;
  engine::check(std::string_view(unit.symbol) == "USD/h", "a base unit has a name");
  return "USD/s";
}

// Sections that say nothing about a sweep of other tasks than this one.
struct TaskSection {
  std::string_view section;
  engine::Task task;
};
constexpr TaskSection kTaskSections[] = {
    {"step", engine::Task::step},      {"request", engine::Task::request},
    {"load", engine::Task::serve},     {"slo", engine::Task::serve},
    {"capacity", engine::Task::serve}, {"output", engine::Task::serve},
};

bool of_an_absent_task(const std::string& path, engine::Task task) {
  const std::string_view section = std::string_view(path).substr(0, path.find('.'));
  for (const TaskSection& entry : kTaskSections) {
    if (entry.section == section) return entry.task != task;
  }
  return false;
}

void add_settings(const SchemaInputs& inputs, std::vector<Column>& columns) {
  const auto& leaves = engine::leaf_table().leaves;
  const auto varied = [&inputs](int leaf) {
    return std::ranges::find(inputs.varied_leaves, leaf) != inputs.varied_leaves.end();
  };
  const auto role_stated = [&inputs](const engine::Leaf& leaf) {
    const int presence = leaf.presence;
    return presence >= 0 ? engine::is_present(inputs.base, leaf)
                         : engine::leaf_integer(inputs.base, leaf) != 0;
  };
  const bool one_task = !varied(engine::leaf_table().find_leaf("task"));
  for (int i = 0; i < int(leaves.size()); ++i) {
    const engine::Leaf& leaf = leaves[std::size_t(i)];
    if (engine::of_role(leaf) && !varied(i) && !role_stated(leaf)) continue;
    if (one_task && !varied(i) && of_an_absent_task(leaf.path, inputs.base.task)) continue;
    columns.push_back({.name = leaf_column(leaf.path),
                       .type = type_of(leaf.kind),
                       .role = ColumnRole::setting,
                       .unit = base_unit(leaf.unit),
                       .description = std::string(leaf.meaning),
                       .source = i});
  }
}

void add_results(std::vector<Column>& columns) {
  const auto add = [&columns](ResultColumn source, const char* name, ColumnType type,
                              const char* description) {
    columns.push_back(
        {.name = name,
         .type = type,
         .role = ColumnRole::result,
         .description = description,
         .nullable = source == ResultColumn::reason || source == ResultColumn::reason_class,
         .source = int(source)});
  };
  add(ResultColumn::status, "status", ColumnType::text, "whether the point works");
  add(ResultColumn::reason, "reason", ColumnType::text, "why it does not; null when it does");
  add(ResultColumn::reason_class, "reason_class", ColumnType::text,
      "the kind of reason, to group by: memory, links, divisibility, format, context, cluster, "
      "load, slo, calibration, unsupported, budget, figures or error; null when the point works");
  add(ResultColumn::saturation, "saturation", ColumnType::text,
      "how a served load and the system's speed get along: stable, backlogged (queues, but bounded "
      "ones), overloaded (less is finished than arrives), undecided (the run is too short to "
      "tell); "
      "none: nothing was served");
  add(ResultColumn::bound, "bound", ColumnType::text,
      "the part without which the point would take the least time: compute, memory, l2 (cache), "
      "launch (the start of kernels on the device), network or host");
  add(ResultColumn::tier, "tier", ColumnType::text, "the least founded tier among the kernels");
  add(ResultColumn::extrapolated, "extrapolated", ColumnType::boolean,
      "some kernel lies outside what was measured");
}

void add_metrics(std::vector<Column>& columns) {
  for (int i = 0; i < int(metric_table().size()); ++i) {
    const Metric& metric = metric_table()[std::size_t(i)];
    columns.push_back({.name = metric.column,
                       .type = ColumnType::float64,
                       .role = ColumnRole::metric,
                       .unit = metric.unit.symbol,
                       .description = std::string(metric.meaning),
                       .nullable = true,
                       .source = i});
  }
}

Column identity(const char* name, ColumnType type, const char* description, int source) {
  return {.name = name,
          .type = type,
          .role = ColumnRole::identity,
          .description = description,
          .source = source};
}

// `index` and `key` of a table other than points.
void add_owner(std::vector<Column>& columns) {
  columns.push_back(
      identity("index", ColumnType::int64, "position of the point in the grid of the sweep", 0));
  columns.push_back(
      identity("key", ColumnType::text, "content hash of the point; joins the points table", 1));
}

// A column a field of a row.
struct RowVisitor {
  std::vector<Column>& out;

  template <class T>
  void operator()(std::string_view name, const T&, std::string_view meaning) {
    Column column{.name = std::string(name),
                  .role = ColumnRole::result,
                  .description = std::string(meaning),
                  .source = int(out.size())};
    if constexpr (engine::IsQuantity<T>) {
      constexpr engine::Unit unit = engine::UnitOf<T>::unit;
      static_assert(unit.per_base == 1, "rows are written as they are");
      column.name = with_suffix(name, unit);
      column.unit = unit.symbol;
      column.nullable = true;
    } else if constexpr (std::is_same_v<T, bool>) {
      column.type = ColumnType::boolean;
    } else if constexpr (engine::NamedEnum<T>) {
      column.type = ColumnType::text;
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      column.type = ColumnType::int64;
    }
    out.push_back(std::move(column));
  }
};

template <class Row>
std::vector<Column> row_columns() {
  std::vector<Column> columns;
  add_owner(columns);
  const Row none;
  Row::fields(none, RowVisitor{columns});
  return columns;
}

}  // namespace

const std::vector<Metric>& metric_table() {
  static const std::vector<Metric> table = [] {
    std::vector<Metric> metrics;
    const engine::Metrics none;
    engine::Metrics::fields(none, MetricVisitor{metrics});
    engine::check(metrics.size() == kMetrics, "every metric is in the field list");
    return metrics;
  }();
  return table;
}

const double* metric_values(const engine::Metrics& metrics) {
  return engine::figure_values(metrics).data();
}
double* metric_values(engine::Metrics& metrics) { return engine::figure_values(metrics).data(); }

std::string leaf_column(const std::string& path) {
  constexpr std::string_view name = ".name";
  if (!path.ends_with(name)) return path;
  const std::string section = path.substr(0, path.size() - name.size());
  const engine::LeafTable& table = engine::leaf_table();
  const int found = table.find_section(section);
  return found >= 0 && !table.sections[std::size_t(found)].library.empty() ? section : path;
}

std::vector<Column> point_columns(const SchemaInputs& inputs) {
  std::vector<Column> columns;
  columns.push_back(identity("index", ColumnType::int64, "position in the grid of the sweep", 0));
  columns.push_back(
      identity("key", ColumnType::text, "content hash of the point; joins runs and tables", 1));
  for (int i = 0; i < int(inputs.labels.size()); ++i) {
    const std::string& axis = inputs.labels[std::size_t(i)].name;
    columns.push_back({.name = "axis." + axis,
                       .type = ColumnType::text,
                       .role = ColumnRole::label,
                       .description = "what the sweep says for " + axis,
                       .nullable = true,
                       .source = i});
  }
  add_settings(inputs, columns);
  add_results(columns);
  add_metrics(columns);
  columns.push_back({.name = "model_version",
                     .type = ColumnType::int64,
                     .role = ColumnRole::provenance,
                     .description = "version of the formulas behind the figures"});

  std::set<std::string_view> names;
  for (const Column& column : columns) {
    engine::check(names.insert(column.name).second, "no two columns share a name");
  }
  return columns;
}

std::vector<Column> kernel_columns() {
  std::vector<Column> columns;
  const auto add = [&columns](const char* name, ColumnType type, const char* unit,
                              const char* description) {
    columns.push_back({.name = name,
                       .type = type,
                       .role = ColumnRole::result,
                       .unit = unit,
                       .description = description,
                       .has_range = type != ColumnType::float64,
                       .source = int(columns.size())});
  };
  add_owner(columns);
  add("phase", ColumnType::text, "", "part of the work the kernel belongs to");
  add("op", ColumnType::text, "", "what the operation is for in the model");
  add("family", ColumnType::text, "", "kernels that share a cost model");
  add("algorithm", ColumnType::text, "", "how a collective moves its data; none for a kernel");
  add("calls", ColumnType::float64, "", "launches on one device");
  add("seconds", ColumnType::float64, "s", "time of all calls on one device");
  add("low_ratio", ColumnType::float64, "",
      "lower end of the 90% interval of the time, as a multiple of seconds");
  add("high_ratio", ColumnType::float64, "",
      "upper end of the 90% interval of the time, as a multiple of seconds");
  add("flops", ColumnType::float64, "FLOP", "arithmetic of all calls on one device");
  add("bytes", ColumnType::float64, "B", "memory or network traffic of all calls on one device");
  add("bound", ColumnType::text, "", "the part without which the kernel would take the least time");
  add("tier", ColumnType::text, "", "how well founded the time is");
  add("extrapolated", ColumnType::boolean, "", "outside what was measured");
  return columns;
}

std::vector<Column> request_columns() { return row_columns<engine::RequestRow>(); }
std::vector<Column> timeline_columns() { return row_columns<engine::TimelineRow>(); }

}  // namespace results
