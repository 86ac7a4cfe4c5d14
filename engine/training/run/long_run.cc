#include "engine/training/run/long_run.h"

#include <cmath>

#include "engine/base/random.h"

namespace engine {

namespace {

// `log_share` is the logarithm of the share of steps in which the slowest takes at most this.
double slowest(double jitter, double devices, double log_share) {
  const double variance = std::log1p(jitter * jitter);
  // The slowest is below a time where all devices are: few of a single device's steps are above it.
  const double above = -std::expm1(log_share / devices);
  return std::exp(-std::sqrt(variance) * normal_quantile(above) - variance / 2);
}

}  // namespace

double slowest_factor(double jitter, double devices, double quantile) {
  return jitter <= 0 ? 1 : slowest(jitter, devices, std::log(quantile));
}

double mean_slowest_factor(double jitter, double devices) {
  if (jitter <= 0) return 1;
  // Steps by how slow they are, as a normal variable: what lies beyond seven deviations does not count.
  constexpr double step = 0.25, most = 7;
  double sum = 0, weights = 0;
  for (double z = -most; z <= most; z += step) {
    const double beyond = 0.5 * std::erfc(std::abs(z) / std::sqrt(2.0));
    const double weight = std::exp(-z * z / 2);
    sum += weight * slowest(jitter, devices, z > 0 ? std::log1p(-beyond) : std::log(beyond));
    weights += weight;
  }
  return sum / weights;
}

Seconds best_interval(const FailingRun& run) {
  const double between = run.between_failures.value, writing = run.checkpoint.value;
  if (writing >= 2 * between) return run.between_failures;
  const double share = std::sqrt(writing / (2 * between));
  return Seconds{std::sqrt(2 * writing * between) * (1 + share / 3 + share * share / 9) - writing};
}

double goodput(const FailingRun& run, Seconds interval) {
  const double between = run.between_failures.value;
  const double lost = std::exp(run.restart.value / between) *
                      std::expm1((interval + run.checkpoint).value / between);
  return interval.value / (between * lost);
}

}  // namespace engine
