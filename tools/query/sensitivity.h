// Which axis moves a figure, and how strongly.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/query/question.h"

namespace tools {

// Two rows are a pair for an axis where they agree on every other axis, so that only this axis can have
// moved the figure. In a sample no two rows are: then all rows together are compared, since the axes of
// a sample do not follow one another.
struct AxisEffect {
  std::string axis;
  std::size_t values = 0;  // different ones among the candidates
  std::size_t sets = 0;    // of rows that differ in this axis alone; 0: a sample
  double share = 0;        // of the variance of the figure's logarithm that the axis alone explains
  double ratio = 0;       // largest over smallest figure in a set, geometric mean; NaN without sets
  double elasticity = 0;  // percent of the figure for one percent of the axis; NaN: not a number
  std::string best;  // value of the axis at the best row of most sets; empty where it moves nothing
};

// One an axis with more than one value, the strongest first. `candidates` are of one objective; where a
// figure is not positive everywhere, shares are of the figure itself and ratios are NaN.
std::vector<AxisEffect> axis_effects(const RunRows& rows, const Candidates& candidates,
                                     const Objective& objective);

}  // namespace tools
