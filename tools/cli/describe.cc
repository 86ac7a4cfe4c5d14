// llmsweep describe: every field of a spec and every column of the tables.
#include <fmt/core.h>

#include <cmath>
#include <memory>
#include <string>

#include "engine/leaves.h"
#include "results/schema.h"
#include "sweep/spec/read_value.h"
#include "tools/cli/cli.h"

namespace tools {
namespace {

std::string kind_text(const engine::Leaf& leaf) {
  switch (leaf.kind) {
    case engine::LeafKind::quantity:
      return std::string(leaf.unit.symbol);
    case engine::LeafKind::number:
      return "number";
    case engine::LeafKind::integer:
      return "integer";
    case engine::LeafKind::boolean:
      return "true | false";
    case engine::LeafKind::enumeration: {
      std::string names;
      for (const std::string_view name : leaf.names) {
        names += (names.empty() ? "" : " | ") + std::string(name);
      }
      return names;
    }
    case engine::LeafKind::text:
      return "text";
  }
  return "";
}

// What raising a field does, where it says so.
std::string_view direction_text(engine::Raising raising) {
  switch (raising) {
    case engine::Raising::never_slower:
      return " (more is never slower)";
    case engine::Raising::never_faster:
      return " (more is never faster)";
    case engine::Raising::either:
    case engine::Raising::unstated:
      break;
  }
  return "";
}

bool matches(std::string_view text, const std::string& filter) {
  return filter.empty() || text.find(filter) != std::string_view::npos;
}

void describe_fields(const std::string& filter) {
  const engine::Scenario defaults;
  fmt::print("Fields of a scenario: under 'base', as axes, and in expressions.\n\n");
  fmt::print("{:<36} {:<34} {:<14} {}\n", "field", "unit or values", "default", "meaning");
  for (const engine::Leaf& leaf : engine::leaf_table().leaves) {
    if (!matches(leaf.path, filter)) continue;
    fmt::print("{:<36} {:<34} {:<14} {}{}\n", leaf.path, kind_text(leaf),
               sweep::value_text(leaf, engine::get_leaf(defaults, leaf)), leaf.meaning,
               direction_text(leaf.range.raising));
  }
}

void describe_columns(const char* table, const std::vector<results::Column>& columns,
                      const std::string& filter) {
  fmt::print("\nColumns of {}/*.parquet\n\n{:<36} {:<8} {:<10} {:<8} {}\n", table, "column", "type",
             "unit", "is a", "meaning");
  for (const results::Column& column : columns) {
    if (!matches(column.name, filter)) continue;
    fmt::print("{:<36} {:<8} {:<10} {:<8} {}\n", column.name, engine::name_of(column.type),
               column.unit, engine::name_of(column.role), column.description);
  }
}

// A schema with every leaf: what a sweep of all tasks would write.
results::SchemaInputs everything() {
  results::SchemaInputs inputs;
  inputs.varied_leaves.push_back(engine::leaf_table().find_leaf("task"));
  return inputs;
}

}  // namespace

void add_describe(CLI::App& app, int& exit_code) {
  auto filter = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("describe", "Describe every field and column");
  verb->footer("  llmsweep describe bandwidth      those whose name contains 'bandwidth'");
  verb->add_option("filter", *filter, "part of a name");
  verb->callback([filter, &exit_code] {
    describe_fields(*filter);
    describe_columns("points", results::point_columns(everything()), *filter);
    describe_columns("kernels", results::kernel_columns(), *filter);
    describe_columns("requests", results::request_columns(), *filter);
    describe_columns("timeline", results::timeline_columns(), *filter);
    exit_code = kOk;
  });
}

}  // namespace tools
