// The value below which a share of the values lies.
#pragma once

#include <vector>

namespace tools {

// `q` is the share; between two values the answer is interpolated. The values are reordered.
double quantile(std::vector<double>& values, double q);

}  // namespace tools
