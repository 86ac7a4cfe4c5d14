#include "engine/training/run/run_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/random.h"

namespace engine {
namespace {

// Rarer than anybody could notice, and below the rounding of run times.
constexpr double kNegligible = 1e-12;
// The normal distribution takes over gradually between these numbers of failures.
constexpr double kFew = 30, kMany = 60;

// The distribution of the sum of n numbers that are even between 0 and 1 (Irwin and Hall).
double even_sum_below(int n, double sum) {
  if (sum <= 0) return 0;
  if (sum >= n) return 1;
  if (sum > 0.5 * n) return 1 - even_sum_below(n, n - sum);
  double volume = 0, corners = 1;  // the sign says whether they are added or taken away
  for (int k = 0; k < sum; ++k) {
    volume += corners * std::pow(sum - k, n);
    corners *= -double(n - k) / double(k + 1);
  }
  return volume / std::tgamma(n + 1.0);
}

// The same in deviations from the mean.
double even_deviation_below(int n, double z) {
  constexpr int exact = 8;  // beyond, the normal distribution differs by less than half a percent
  const double sum = 0.5 * n + z * std::sqrt(n / 12.0);
  if (n <= exact || sum <= 0 || sum >= n) return even_sum_below(n, sum);
  return normal_below(z);
}

// The chance to end within a limit with exactly `failures` failures.
double within_after(const RunTimes& times, int failures, Seconds limit) {
  const double late = (limit - times.failure_free - times.delay * failures).value;
  const double jitter = times.jitter.value * times.jitter.value;
  const double delays = failures * times.delay_spread.value * times.delay_spread.value;
  if (jitter + delays <= 0) return late >= 0 ? 1 : 0;
  const double z = late / std::sqrt(jitter + delays);
  // Each part shapes the sum by its share of the variance.
  const double normal = jitter / (jitter + delays);
  double result = normal > 0 ? normal * normal_below(z) : 0;
  if (normal < 1) result += (1 - normal) * even_deviation_below(failures, z);
  return result;
}

double within_with_few(const RunTimes& times, Seconds limit) {
  double weight = std::exp(-times.failures), sum = 0, weights = 0;
  for (int n = 0; n <= times.failures || weight > 1e-3 * kNegligible; ++n) {
    sum += weight * within_after(times, n, limit);
    weights += weight;
    weight *= times.failures / (n + 1);
  }
  return sum / weights;
}

double within_as_normal(const RunTimes& times, Seconds limit) {
  if (times.jitter.value <= 0 && limit < times.failure_free) return 0;
  if (times.deviation().value <= 0) return 1;
  return normal_below((limit - times.mean()) / times.deviation());
}

// How much of the distribution is the normal one.
double normal_share(double failures) {
  if (failures < kNegligible) return 1;
  return std::clamp((failures - kFew) / (kMany - kFew), 0.0, 1.0);
}

}  // namespace

Seconds RunTimes::mean() const { return failure_free + delay * failures; }

Seconds RunTimes::deviation() const {
  const double square = delay.value * delay.value + delay_spread.value * delay_spread.value;
  return Seconds{std::sqrt(jitter.value * jitter.value + failures * square)};
}

double RunTimes::probability_within(Seconds limit) const {
  const double normal = normal_share(failures);
  double result = normal > 0 ? normal * within_as_normal(*this, limit) : 0;
  if (normal < 1) result += (1 - normal) * within_with_few(*this, limit);
  return result;
}

Seconds RunTimes::quantile(double share) const {
  if (normal_share(failures) >= 1) {
    const Seconds at = mean() + deviation() * normal_quantile(share);
    return jitter.value > 0 ? at : std::max(at, failure_free);
  }
  // No more than this are so far from the mean, whatever the distribution (Cantelli).
  Seconds low = mean() - deviation() / std::sqrt(share);
  Seconds high = mean() + deviation() / std::sqrt(1 - share);
  if (jitter.value <= 0) {
    if (probability_within(failure_free) >= share) return failure_free;
    low = failure_free;
  }
  // Halved until doubles, or nearly so, come to an end.
  for (int i = 0; i < 100 && (high - low).value > 1e-12 * high.value; ++i) {
    const Seconds middle = (low + high) / 2;
    (probability_within(middle) >= share ? high : low) = middle;
  }
  return high;
}

RunTimes times_of(const FailingRun& run, Seconds interval, Seconds work) {
  RunTimes times{.failure_free = work * (1 + run.checkpoint / interval)};
  times.failures = times.failure_free / run.between_failures;
  if (times.failures < kNegligible) {
    times.failures = 0;
    return times;
  }
  const Seconds delays = work / goodput(run, interval) - times.failure_free;
  times.delay = std::max(Seconds{0}, delays) / times.failures;
  // A restart, and anything up to all since the last checkpoint is done again.
  const Seconds most = interval + run.checkpoint;
  times.delay_spread = times.delay * (most / std::sqrt(12.0) / (run.restart + most / 2));
  return times;
}

}  // namespace engine
