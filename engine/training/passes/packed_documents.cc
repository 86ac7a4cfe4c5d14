#include "engine/training/passes/packed_documents.h"

#include <algorithm>
#include <cmath>

#include "engine/base/random.h"

namespace engine {

// Pairs of a token and a key before it are a triangle, cut off by the window.
double length_of_equal(double length, double window) {
  if (window <= 0 || length <= window) return length;
  return 2 * window - window * window / length;
}

double length_around_a_token(const TrainSettings& train, double window) {
  const double mean = double(train.document_length), most = double(train.sequence);
  const double seen = window > 0 ? std::min(window, most) : most;
  const double square = 1 + train.document_cv * train.document_cv;
  if (square == 1) return length_of_equal(std::min(mean, most), seen);
  const double variance = std::log(square), spread = std::sqrt(variance);
  // In deviations of the logarithm of lengths: where a length lies.
  const auto place = [&](double length) {
    return (std::log(length / mean) + variance / 2) / spread;
  };
  const double end = place(most), edge = place(seen);
  const double cut = normal_below(-end);
  const double lengths = mean * normal_below(end - spread) + most * cut;
  const double longer =
      mean * (normal_below(end - spread) - normal_below(edge - spread)) + most * cut;
  const double pairs = mean * mean * square * normal_below(edge - 2 * spread) + 2 * seen * longer -
                       seen * seen * normal_below(-edge);
  return std::min(pairs / lengths, length_of_equal(most, seen));
}

}  // namespace engine
