#include "engine/training/long_run.h"

#include <cmath>

#include "engine/base/random.h"

namespace engine {

double slowest_factor(double jitter, double devices, double quantile) {
  if (jitter <= 0) return 1;
  const double variance = std::log1p(jitter * jitter);
  // The slowest is below a time where all devices are: few of a single device's steps are above it.
  const double above = -std::expm1(std::log(quantile) / devices);
  return std::exp(-std::sqrt(variance) * normal_quantile(above) - variance / 2);
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
