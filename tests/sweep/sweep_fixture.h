// What tests of the sweep language share: a library of toy specs, and sweeps written in the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "engine/leaves/leaves.h"
#include "sweep/language/library.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/space/space_parts.h"
#include "tests/support/paths.h"

namespace sweep {

inline std::filesystem::path fixtures() {
  return std::filesystem::path(paths::source()) / "tests/sweep/fixtures";
}

inline Library toy_library() { return Library({fixtures() / "specs"}); }

// A base every toy sweep can start with.
inline const std::string kToyBase = "base: {device: toy, model: tiny}\n";

// Toy sweeps are about the language: what the engine would read of them is no matter.
inline engine::Result<SweepSpec> read_toy(const std::string& text) {
  return read_sweep_text(text, "toy.yaml", toy_library(), InertAxes::allowed);
}

// The sweep, which must have no mistakes.
inline SweepSpec toy_sweep(const std::string& text) {
  engine::Result<SweepSpec> spec = read_toy(text);
  if (!spec) {
    ADD_FAILURE() << engine::to_text(spec.mistakes());
    spec = read_toy(kToyBase);
  }
  return std::move(spec).value();
}

inline std::string mistakes_of(const std::string& text) {
  const engine::Result<SweepSpec> spec = read_toy(text);
  return spec ? "" : engine::to_text(spec.mistakes());
}

// A position of a sweep, built.
struct BuiltPoint {
  Admission admission = Admission::admitted;
  int rejected_by = -1;
  Point point;
};
inline std::vector<BuiltPoint> all_points(const SweepSpec& spec) {
  std::vector<BuiltPoint> points;
  PointBuilder builder(spec.space);
  for (std::uint64_t i = 0; i < spec.space.size(); ++i) {
    BuiltPoint& built = points.emplace_back();
    built.admission = builder.build(i, built.point);
    built.rejected_by = builder.rejected_by();
  }
  return points;
}
inline std::vector<engine::Scenario> admitted(const SweepSpec& spec) {
  std::vector<engine::Scenario> scenarios;
  for (BuiltPoint& built : all_points(spec)) {
    if (built.admission == Admission::admitted) scenarios.push_back(built.point.scenario);
  }
  return scenarios;
}
// One numeric leaf over all points that are admitted.
inline std::vector<double> leaf_over(const SweepSpec& spec, const std::string& path) {
  const engine::LeafTable& table = engine::leaf_table();
  std::vector<double> values;
  for (const engine::Scenario& scenario : admitted(spec)) {
    values.push_back(
        engine::leaf_as_double(scenario, table.leaves[std::size_t(table.find_leaf(path))]));
  }
  return values;
}
// The label of a column at a point, or "-".
inline std::string label_of(const SweepSpec& spec, const Point& point, const std::string& column) {
  const std::vector<LabelColumn>& columns = spec.space.label_columns();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name != column) continue;
    return point.labels[i] < 0 ? "-" : columns[i].values[std::size_t(point.labels[i])];
  }
  return "no such column";
}

}  // namespace sweep
