// Shares that fall off by a power law: of tenants, of adapters.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace engine {

// The n-th of `count` has a share in proportion to 1/n to the power of `skew`: the sums of these.
inline std::vector<double> summed_shares(std::int64_t count, double skew) {
  std::vector<double> sums;
  sums.reserve(std::size_t(count));
  double sum = 0;
  for (std::int64_t n = 1; n <= count; ++n) sums.push_back(sum += std::pow(double(n), -skew));
  return sums;
}

// Which of them has the number `u` between 0 and 1.
inline std::int64_t share_at(const std::vector<double>& sums, double u) {
  const auto found = std::upper_bound(sums.begin(), sums.end(), u * sums.back());
  return std::min(found - sums.begin(), std::ptrdiff_t(sums.size()) - 1);
}

// How many different values there are on average among `draws` independent draws.
inline double expected_different(const std::vector<double>& sums, double draws) {
  double different = 0, before = 0;
  for (const double sum : sums) {
    different += 1 - std::pow(1 - (sum - before) / sums.back(), draws);
    before = sum;
  }
  return different;
}

}  // namespace engine
