#include "results/mean_interval.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace results {
namespace {

// Share of Student's distribution within t of zero: a finite sum for whole degrees of freedom
// (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4).
double share_within(double t, std::size_t freedom) {
  const double angle = std::atan(t / std::sqrt(double(freedom)));
  const double cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1;
  double sum = 0;
  for (std::size_t k = odd ? 1 : 0; k + 2 <= freedom; k += 2) {
    sum += term;
    term *= double(k + 1) / double(k + 2) * cosine * cosine;
  }
  return odd ? (angle + std::sin(angle) * sum) * 2 / std::numbers::pi : std::sin(angle) * sum;
}

}  // namespace

double student_95(std::size_t degrees_of_freedom) {
  double low = 1.9, high = 13;  // infinitely many degrees of freedom: 1.96; one: 12.7
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (share_within(middle, degrees_of_freedom) < 0.95 ? low : high) = middle;
  }
  return high;
}

MeanInterval mean_interval(std::span<const double> values) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const auto n = double(values.size());
  if (values.empty()) return {none, none, none};
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  if (values.size() == 1) return {mean, none, none};
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half = student_95(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

}  // namespace results
