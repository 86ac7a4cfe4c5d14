#include "results/schema.h"

#include <algorithm>
#include <set>
#include <type_traits>

#include "engine/base/check.h"
#include "engine/leaves/leaf_use.h"
#include "engine/leaves/leaves.h"
#include "engine/tasks/task_table.h"
#include "sweep/space/space_parts.h"

namespace results {
namespace {

struct MetricVisitor {
  std::vector<Metric>& out;
  engine::FigureGroup group;

  template <class T>
  void operator()(std::string_view name, const T&, std::string_view meaning) {
    engine::Unit unit;
    if constexpr (engine::IsQuantity<T>) unit = engine::UnitOf<T>::unit;
    out.push_back({with_suffix(name, unit), unit, meaning, group});
  }
};

// Figures that are plain numbers, and whose names have the unit in them: no type stands for it.
std::string_view unit_in_name(std::string_view name) {
  struct Named {
    std::string_view begin, unit;
  };
  constexpr Named all[] = {{"tokens_per_s", "tok/s"},
                           {"rollout_tokens_per_s", "tok/s"},
                           {"samples_per_s", "1/s"},
                           {"images_per_s", "1/s"},
                           {"price_usd_per_1000_images", "USD"},
                           {"device_hours", "h"},
                           {"energy_j_per_output_token", "J/tok"},
                           {"price_usd_per_mtok", "USD/Mtok"}};
  for (const Named& one : all) {
    if (name.starts_with(one.begin)) return one.unit;
  }
  return "";
}

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

bool is_varied(const SchemaInputs& inputs, int leaf) {
  return std::ranges::find(inputs.varied_leaves, leaf) != inputs.varied_leaves.end();
}

// The tasks that points of the sweep may have.
std::vector<engine::TaskEntry> tasks_of(const SchemaInputs& inputs) {
  if (!is_varied(inputs, engine::leaf_table().find_leaf("task"))) {
    return {engine::task_entry(inputs.base.task)};
  }
  const auto all = engine::task_table();
  return {all.begin(), all.end()};
}

// Whether a leaf lies in a section that only a task of other sweeps reads.
bool of_an_absent_task(const engine::Leaf& leaf, const std::vector<engine::TaskEntry>& tasks) {
  const std::optional<engine::Task> reader = engine::only_reader(leaf);
  return reader && std::ranges::find(tasks, *reader, &engine::TaskEntry::task) == tasks.end();
}

void add_settings(const SchemaInputs& inputs, std::vector<Column>& columns) {
  const auto& leaves = engine::leaf_table().leaves;
  // The leaf `present` of a role is itself what says that the role is there.
  const auto role_stated = [&inputs](const engine::Leaf& leaf) {
    return leaf.presence >= 0 ? engine::is_present(inputs.base, leaf)
                              : engine::leaf_integer(inputs.base, leaf) != 0;
  };
  const std::vector<engine::TaskEntry> tasks = tasks_of(inputs);
  for (int i = 0; i < int(leaves.size()); ++i) {
    const engine::Leaf& leaf = leaves[std::size_t(i)];
    if (!is_varied(inputs, i)) {
      if (engine::of_role(leaf) && !role_stated(leaf)) continue;
      if (of_an_absent_task(leaf, tasks)) continue;
    }
    columns.push_back(
        {.name = leaf_column(leaf.path),
         .type = type_of(leaf.kind),
         .role = ColumnRole::setting,
         .unit = base_unit(leaf.unit),
         .description = std::string(leaf.meaning),
         // A field of a role that some points lack.
         .nullable = leaf.presence >= 0 && is_varied(inputs, leaf.presence),
         .sampled = std::ranges::find(inputs.sampled_leaves, i) != inputs.sampled_leaves.end(),
         .source = i});
  }
}

void add_results(std::vector<Column>& columns) {
  const auto add = [&columns](ResultColumn source, const char* name, ColumnType type,
                              const char* description) {
    columns.push_back({.name = name,
                       .type = type,
                       .role = ColumnRole::result,
                       .description = description,
                       .nullable = source == ResultColumn::reason ||
                                   source == ResultColumn::reason_class ||
                                   source == ResultColumn::bound || source == ResultColumn::tier ||
                                   source == ResultColumn::calibration ||
                                   source == ResultColumn::extrapolated_share ||
                                   source == ResultColumn::power_limited_share,
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
      "tell, as any run is at a capacity_req_per_s that is all that can be served: there "
      "capacity_decided says how sure it is); none: nothing was served. With a neighbour, the main "
      "model's load: the other's is in "
      "neighbour_overloaded");
  add(ResultColumn::bound, "bound", ColumnType::text,
      "the part without which the point would take the least time: compute, memory, l2 (cache), "
      "launch (the start of kernels on the device), network or host; null when the point does not "
      "work");
  add(ResultColumn::tier, "tier", ColumnType::text,
      "what the times rest on, by the least founded kernel: measured (a sweep on that device), "
      "transfer (formulas fitted to other devices) or roofline (physics alone: a lower bound, "
      "often half the real time); null when the point does not work");
  add(ResultColumn::calibration, "calibration", ColumnType::text,
      "calibration that the kernels' times were looked up in, by its name in 'llmsweep list "
      "calibrations'; null where there is none, or nothing was simulated");
  add(ResultColumn::extrapolated, "extrapolated", ColumnType::boolean,
      "some kernel lies outside what was measured");
  add(ResultColumn::extrapolated_share, "extrapolated_share", ColumnType::float64,
      "share of the time that kernels outside what was measured take; null when the point does not "
      "work");
  add(ResultColumn::power_limited_share, "power_limited_share", ColumnType::float64,
      "share of the kernels' time that the devices' power limit adds, by lowering their clock; "
      "null when the point does not work");
}

void add_metrics(std::vector<Column>& columns) {
  for (int i = 0; i < int(metric_table().size()); ++i) {
    const Metric& metric = metric_table()[std::size_t(i)];
    columns.push_back({.name = metric.column,
                       .type = ColumnType::float64,
                       .role = ColumnRole::metric,
                       .unit = metric.unit.symbol[0] != '\0'
                                   ? std::string(metric.unit.symbol)
                                   : std::string(unit_in_name(metric.column)),
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

}  // namespace

const std::vector<Metric>& metric_table() {
  static const std::vector<Metric> table = [] {
    std::vector<Metric> metrics;
    const engine::Metrics none;
    engine::Metrics::groups(none, [&metrics](engine::FigureGroup group, auto&& each) {
      each(MetricVisitor{metrics, group});
    });
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

SchemaInputs schema_inputs(const sweep::Space& space) {
  return {.base = space.base(),
          .varied_leaves = space.varied_leaves(),
          .labels = space.label_columns(),
          .sampled_leaves = space.sampled_leaves(),
          .resources = space.parts().resources};
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

void add_owner(std::vector<Column>& columns) {
  columns.push_back(
      identity("index", ColumnType::int64, "position of the point in the grid of the sweep", 0));
  columns.push_back(
      identity("key", ColumnType::text, "content hash of the point; joins the points table", 1));
}

std::vector<std::size_t> figures_of(const SchemaInputs& inputs) {
  const std::vector<engine::TaskEntry> tasks = tasks_of(inputs);
  std::vector<std::size_t> figures;
  for (std::size_t i = 0; i < kMetrics; ++i) {
    const auto has = [group = metric_table()[i].group](const engine::TaskEntry& task) {
      return std::ranges::find(task.figures, group) != task.figures.end();
    };
    if (std::ranges::any_of(tasks, has)) figures.push_back(i);
  }
  return figures;
}

std::string with_suffix(std::string_view name, const engine::Unit& unit) {
  const std::string suffix = unit.suffix[0] == '\0' ? "" : "_" + std::string(unit.suffix);
  return name.ends_with(suffix) ? std::string(name) : std::string(name) + suffix;
}

}  // namespace results
