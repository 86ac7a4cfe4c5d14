// How far the figures of joined points moved, and which of their other columns changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/compare/run_pair.h"

namespace tools {

// How much a figure may move, relative to what it was. Exactly equal figures never drift.
struct Tolerances {
  double usual = 1e-9;  // beyond rounding
  std::map<std::string, double> of;

  // Figures that only one point of a pair has are left out.
  bool only_common = false;
  double for_column(const std::string& name) const {
    const auto found = of.find(name);
    return found == of.end() ? usual : found->second;
  }
};
// "1%", "0.01" or "ttft_p99_s=5%", each one; mistakes name the option.
engine::Result<Tolerances> parse_tolerances(const std::vector<std::string>& written,
                                            const RunPair& pair);

// Share by which a figure moved: 0.1 is ten percent more; infinite from zero, NaN where one is null.
double relative_change(double before, double after);

struct FigureDrift {
  struct Point {
    std::uint32_t pair = 0;  // its place in RunPair::pairs
    double before = 0;       // NaN: null
    double after = 0;
  };
  std::string column;
  std::size_t compared = 0;  // pairs of which at least one has the figure
  std::size_t changed = 0;   // beyond the tolerance, with those that only one has
  std::size_t only_one = 0;  // has the figure
  double median = 0;         // relative change of those that changed; NaN: only_one are all
  std::vector<Point> worst;  // those that changed most, first; as many as were asked for
};

// One a metric that both runs have and some pair has a value of. Points that work in both count; those
// of which any figure changed are marked in `drifted`, one flag a pair.
std::vector<FigureDrift> figure_drifts(const RunPair& pair,
                                       const std::vector<std::uint8_t>& both_ok,
                                       const Tolerances& tolerances, std::size_t keep,
                                       std::vector<std::uint8_t>& drifted);

// Pairs that say different things in one column.
struct TextDrift {
  struct Change {
    std::string before, after;  // empty: null
    std::size_t points = 0;
    std::uint32_t first = 0;  // place in RunPair::pairs
  };
  std::string column;
  std::size_t compared = 0;
  std::size_t changed = 0;
  std::vector<Change> changes;  // the most frequent first
};
TextDrift text_drift(const RunPair& pair, const std::string& column);
// The settings in which pairs differ: none where they were joined by key.
std::vector<TextDrift> setting_drifts(const RunPair& pair);

// One flag a pair: its points work in both runs.
std::vector<std::uint8_t> both_ok(const RunPair& pair);

}  // namespace tools
