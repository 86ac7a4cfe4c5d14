// Boosted trees fitted to what a form leaves over.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/calibration/boosted_trees.h"
#include "engine/calibration/point_set.h"

namespace tools {

struct TreeOptions {
  std::size_t trees = 60;
  double rate = 0.3;                // share of what is left that each tree takes
  double caution = 1;               // calls that say "nothing", added to every leaf
  std::size_t limits = 63;          // most places a feature can be split at
  std::size_t most_points = 12000;  // of more, an even choice is fitted
  double most_residual = 1;  // a call farther off counts as that: it must not shape the others
};

// Fewer calls than this are too few to find rules in.
constexpr std::size_t kLeastForTrees = 100;

// Empty where the family has no features or there are too few points. Deterministic.
engine::BoostedTrees fit_trees(const std::vector<engine::MeasuredPoint>& points,
                               engine::Features features, double processors,
                               const TreeOptions& options);

}  // namespace tools
