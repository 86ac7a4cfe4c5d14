// How much two kinds of work on one device gain by running at the same time.
#pragma once

#include <algorithm>

namespace engine {

// Together they do at most this many times what one of them does alone: they share caches, power and whatever else a kernel
// model does not name, however well arithmetic and traffic would mix. Pairs of model steps on halves of an H200 came to
// 1.05 to 1.26 (specs/calibration/h200-sxm/colocation.csv).
constexpr double kMostTogether = 1.22;

// Seconds of two kinds of work that take `one` and `other` alone: never more than one after the other, never less than the
// longer.
constexpr double time_together(double one, double other) {
  return std::max({one, other, (one + other) / kMostTogether});
}

}  // namespace engine
