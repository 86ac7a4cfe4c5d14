// The mean of a few independent simulations, and how far it may be off.
#pragma once

#include <cstddef>
#include <span>

namespace results {

// The true mean lies from low to high in 95 of 100 such samples, if the values are spread normally
// about it (Student's interval). Fewer than two values have no interval, none have no mean: NaN.
struct MeanInterval {
  double mean;
  double low;
  double high;
};
MeanInterval mean_interval(std::span<const double> values);

// Within this many standard errors of the mean, either side, lies 95% of Student's distribution.
double student_95(std::size_t degrees_of_freedom);

}  // namespace results
