// Which columns the tables have, as plain data: the sink writes them, the reader finds them and
// `describe` prints them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/outcome.h"
#include "engine/resources.h"
#include "engine/scenario.h"
#include "sweep/space/space.h"

namespace results {

// What the columns of a run follow from.
struct SchemaInputs {
  engine::Scenario base;
  std::vector<int> varied_leaves;  // positions in engine::leaf_table()
  std::vector<sweep::LabelColumn> labels;
  std::vector<int> sampled_leaves = {};  // of the varied ones those that no label tells
  // By which points are evaluated; null: nothing is looked up, and rows name no calibration.
  std::shared_ptr<const engine::Resources> resources = {};
};
SchemaInputs schema_inputs(const sweep::Space& space);

enum class ColumnType : std::uint8_t { int64, float64, boolean, text };
constexpr std::array<std::string_view, 4> enum_names(ColumnType) {
  return {"int64", "double", "bool", "string"};
}

// What stands for null in nullable columns, beside NaN among doubles.
constexpr std::int64_t kNullInteger = std::numeric_limits<std::int64_t>::min();
constexpr std::uint8_t kNullBoolean = 2;

// What a column tells about a point.
enum class ColumnRole : std::uint8_t { identity, label, setting, result, metric, provenance };
constexpr std::array<std::string_view, 6> enum_names(ColumnRole) {
  return {"identity", "label", "setting", "result", "metric", "provenance"};
}

// What a field's metadata say under "axis" of a setting that a sample draws.
inline constexpr std::string_view kSampled = "sampled";

struct Column {
  std::string name;
  ColumnType type = ColumnType::float64;
  ColumnRole role = ColumnRole::setting;
  std::string unit;
  std::string description;
  // All that a column of names may say, where that is known; rows then have numbers into it.
  std::span<const std::string_view> names;
  bool nullable = false;
  // A setting that is an axis by itself: a sample draws it from an interval, so that it has no label.
  bool sampled = false;
  // Files state the least and the greatest value, so that a query may skip them. Not worth its time
  // for figures that every point spreads over many orders of magnitude.
  bool has_range = true;
  // Where the value comes from: the label's, leaf's or metric's number; of a result or an identity,
  // its place among them.
  int source = 0;
};

// The columns between the settings and the metrics, in this order; `source` counts into them.
enum class ResultColumn : std::uint8_t {
  status,
  reason,
  reason_class,
  saturation,
  bound,
  tier,
  calibration,
  extrapolated,
  extrapolated_share,
  power_limited_share
};

std::vector<Column> point_columns(const SchemaInputs& inputs);
// `index` and `key` of the point that a row of another table belongs to.
void add_owner(std::vector<Column>& columns);
// The name of a column whose values have a unit.
std::string with_suffix(std::string_view name, const engine::Unit& unit);

// One figure of engine::Metrics, by its number.
struct Metric {
  std::string column;  // with the unit as suffix: "step_time_s"
  engine::Unit unit;
  std::string_view meaning;
  engine::FigureGroup group = engine::FigureGroup::time;
};
const std::vector<Metric>& metric_table();
constexpr std::size_t kMetrics = engine::kFigures;
// Which of them the tasks of a sweep have, in order; the columns of the others are null throughout.
std::vector<std::size_t> figures_of(const SchemaInputs& inputs);
// The figures as numbers in base units, in the order of metric_table().
const double* metric_values(const engine::Metrics& metrics);
double* metric_values(engine::Metrics& metrics);

// The column of a leaf: its path, except that the name of a section of the library stands for the
// section ("device.name" is column "device").
std::string leaf_column(const std::string& path);

}  // namespace results
