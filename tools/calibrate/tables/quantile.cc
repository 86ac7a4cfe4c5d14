#include "tools/calibrate/tables/quantile.h"

#include <algorithm>
#include <cstddef>

namespace tools {

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const double place = q * double(values.size() - 1);
  const auto below = std::size_t(place);
  const auto at = values.begin() + std::ptrdiff_t(below);
  std::nth_element(values.begin(), at, values.end());
  if (below + 1 == values.size()) return *at;
  const double above = *std::min_element(at + 1, values.end());
  return *at + (place - double(below)) * (above - *at);
}

}  // namespace tools
