#include "tools/calibrate/fit/error_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tools/calibrate/tables/quantile.h"

namespace tools {
namespace {

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t j = i; j < end; ++j) ranks[order[j]] = double(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() < 2) return 1;
  const std::vector<double> left = ranks_of(a), right = ranks_of(b);
  const double middle = double(a.size() - 1) / 2;
  double product = 0, left_square = 0, right_square = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double x = left[i] - middle, y = right[i] - middle;
    product += x * y;
    left_square += x * x;
    right_square += y * y;
  }
  // Where one side is all ties there is no order to get wrong or right.
  return left_square * right_square > 0 ? product / std::sqrt(left_square * right_square) : 0;
}

ErrorSummary error_summary(std::span<const Scored> rows) {
  ErrorSummary summary{.rows = rows.size()};
  if (rows.empty()) return summary;
  std::vector<double> sizes, widths, measured, predicted;
  double inside = 0;
  for (const Scored& row : rows) {
    const double error = row.predicted / row.measured - 1;
    sizes.push_back(std::abs(error));
    widths.push_back((row.hi - row.lo) / row.predicted);
    measured.push_back(row.measured);
    predicted.push_back(row.predicted);
    summary.mean += std::abs(error) / double(rows.size());
    summary.bias += error / double(rows.size());
    if (row.lo <= row.measured && row.measured <= row.hi) ++inside;
  }
  summary.coverage = inside / double(rows.size());
  summary.rank_correlation = rank_correlation(measured, predicted);
  summary.median = quantile(sizes, 0.5);
  summary.width = quantile(widths, 0.5);
  summary.p90 = quantile(sizes, 0.9);
  return summary;
}

std::string error_heading() {
  return fmt::format("{:>8} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8}", "rows", "mean %", "median", "p90",
                     "bias", "rank", "in 90%");
}

std::string error_text(const ErrorSummary& summary) {
  return fmt::format("{:>8} {:>7.1f} {:>7.1f} {:>7.1f} {:>+7.1f} {:>7.3f} {:>8.0f}", summary.rows,
                     100 * summary.mean, 100 * summary.median, 100 * summary.p90,
                     100 * summary.bias, summary.rank_correlation, 100 * summary.coverage);
}

}  // namespace tools
