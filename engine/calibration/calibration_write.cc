// The text of a calibration, written; calibration_text.cc shows what it looks like and reads it.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "engine/base/version.h"
#include "engine/calibration/calibration.h"
#include "engine/calibration/calibration_format.h"
#include "engine/calibration/device_facts.h"

namespace engine {
namespace {

// One line: a header value may not bring lines of its own.
std::string one_line(const std::string& text) {
  if (text.empty()) return "-";
  std::string line = text;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

void write_trees(const BoostedTrees& trees, std::string& text) {
  if (trees.empty()) return;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "trees: {}\n", trees.processors);
  for (std::size_t tree = 0; tree < trees.size(); ++tree) {
    text += "tree:";
    for (std::size_t i = tree * kTreeDepth; i < (tree + 1) * kTreeDepth; ++i) {
      fmt::format_to(out, " {} {}", trees.asked[i], trees.limit[i]);
    }
    for (std::size_t i = tree * kTreeLeaves; i < (tree + 1) * kTreeLeaves; ++i) {
      fmt::format_to(out, " {}", trees.leaves[i]);
    }
    text += '\n';
  }
}

// One line of text a line of points.
void write_points(const std::vector<MeasuredPoint>& points, std::size_t coordinates,
                  std::string& text) {
  auto out = std::back_inserter(text);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& shape = points[i].shape.value;
    const bool continued =
        i > 0 && std::equal(shape.begin() + 1, shape.end(), points[i - 1].shape.value.begin() + 1);
    if (!continued) {
      text += i == 0 ? "line:" : "\nline:";
      for (std::size_t c = 1; c < coordinates; ++c) fmt::format_to(out, " {}", shape[c]);
      text += " :";
    }
    fmt::format_to(out, " {} {}", shape[0], points[i].residual);
  }
  if (!points.empty()) text += '\n';
}

template <class Fit>
void write_set(const std::string& name, const FittedSet<Fit>& set, std::string& text) {
  constexpr CoordinateList list = coordinates_for<Fit>();
  auto out = std::back_inserter(text);
  fmt::format_to(out, "section {}\n", name);
  each_parameter(set.fit, [&out](const auto& parameter, double value) {
    fmt::format_to(out, "{}: {}\n", parameter.name, value);
  });
  fmt::format_to(out, "low: {}\nhigh: {}\nlaunch: {}\n", set.low, set.high, set.launch);
  for (std::size_t i = 0; set.envelope.known && i < list.size(); ++i) {
    if (!std::isfinite(set.envelope.low[i])) continue;
    fmt::format_to(out, "envelope {}: {} {}\n", list[i].name, set.envelope.low[i],
                   set.envelope.high[i]);
  }
  write_trees(set.points.trees(), text);
  write_points(set.points.points(), list.size(), text);
}

}  // namespace

std::string write_calibration(const Calibration& calibration) {
  std::string header = fmt::format(
      "{}{}\nname: {}\ntier: {}\nmodel_version: {}\ndevice: {}\nsource: {}\nfit_error: {}\n",
      calibration_format::kMagic, kCalibrationFormat, one_line(calibration.name),
      name_of(calibration.tier), kKernelFormVersion, one_line(calibration.device),
      one_line(calibration.source), one_line(calibration.fit_error));
  if (!calibration.impl.empty()) header += fmt::format("impl: {}\n", one_line(calibration.impl));
  if (calibration.measured_on) header += facts_text(*calibration.measured_on);
  if (calibration.reworded) header += fmt::format("identity: {}\n", calibration.checksum);
  std::string body;
  Calibration::sections(calibration, [&](const std::string& name, const auto& sets) {
    sets.each([&](ParameterSet which, const auto& set) {
      // What a sweep was completed by belongs to another file.
      if (set.tier != calibration.tier) return;
      write_set(name + "/" + std::string(name_of(which)), set, body);
    });
  });
  return header + "checksum: " + calibration_format::fingerprint(header, body) + "\n" + body;
}

}  // namespace engine
