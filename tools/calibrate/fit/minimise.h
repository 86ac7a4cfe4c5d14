// The smallest value of a function of a few bounded numbers: one coordinate at a time while that
// helps, then Nelder and Mead's simplex.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tools {

// One unknown: where the search starts and the closed interval it stays in. Unknowns whose interval
// is positive are searched in their logarithm, because efficiencies and latencies are ratios.
struct Unknown {
  std::string name;
  double start = 1;
  double low = 0;
  double high = 1;
};

struct MinimiseOptions {
  std::size_t rounds = 30;        // over the coordinates
  std::size_t evaluations = 800;  // of the simplex
  std::size_t cycles = 1;         // of the two in turn, while that helps
};

struct Minimum {
  std::vector<double> point;
  double value = 0;
};

// Deterministic: the same function and unknowns give the same point.
Minimum minimise(const std::function<double(std::span<const double>)>& function,
                 const std::vector<Unknown>& unknowns, const MinimiseOptions& options);

}  // namespace tools
