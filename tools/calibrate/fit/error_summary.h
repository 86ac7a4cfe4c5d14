// How good predictions are: the figures every error table states.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace tools {

// One prediction and what was measured, in seconds; lo and hi are its 90% interval.
struct Scored {
  double measured = 0;
  double predicted = 0;
  double lo = 0;
  double hi = 0;
};

// Errors are relative to the measurement.
struct ErrorSummary {
  std::size_t rows = 0;
  double mean = 0;    // of absolute errors
  double median = 0;  // likewise
  double p90 = 0;     // likewise
  double bias = 0;    // mean of signed errors: above zero, predictions are too slow
  double rank_correlation = 0;
  double coverage = 0;  // share of measurements inside the interval
  double width = 0;     // of the interval, over the prediction: median
};

ErrorSummary error_summary(std::span<const Scored> rows);

// Spearman's: the correlation of ranks, ties sharing their mean rank.
double rank_correlation(std::span<const double> a, std::span<const double> b);

// "    1234    5.1    3.9   11.0   -0.2   0.998   91" under the heading that `error_heading` gives.
std::string error_heading();
std::string error_text(const ErrorSummary& summary);

}  // namespace tools
