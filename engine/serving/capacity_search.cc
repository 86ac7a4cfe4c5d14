#include "engine/serving/capacity_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace engine {

CapacityResult highest_rate(double guess, double tolerance,
                            const std::function<bool(double)>& holds) {
  constexpr double slowest = 1e-6, fastest = 1e9;  // requests a second
  if (!(guess >= slowest)) guess = slowest;
  guess = std::min(guess, fastest);
  const double step = std::log1p(tolerance);
  const auto rate_at = [step](std::int64_t place) { return std::exp(step * double(place)); };
  const auto place_of = [step](double rate) {
    return std::int64_t(std::floor(std::log(rate) / step));
  };
  CapacityResult result;
  const auto works = [&](std::int64_t place) {
    ++result.trials;
    return holds(rate_at(place));
  };

  // Strides double until the answer is between two rates, then halve.
  std::int64_t good = place_of(guess), bad = good;
  const bool started_good = works(good);
  std::int64_t stride = std::max<std::int64_t>(1, std::int64_t(0.05 / step));
  while (true) {
    const std::int64_t next = started_good ? good + stride : bad - stride;
    const double rate = rate_at(next);
    if (rate < slowest) return result;
    if (rate > fastest) {
      result.endless = true;
      return result;
    }
    const bool holds_there = works(next);
    (holds_there ? good : bad) = next;
    if (holds_there != started_good) break;
    stride *= 2;
  }
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (works(middle) ? good : bad) = middle;
  }
  result.rate = rate_at(good);
  for (const double share : {0.5, 0.8}) {
    if (!works(place_of(result.rate * share))) result.monotone = false;
  }
  return result;
}

}  // namespace engine
