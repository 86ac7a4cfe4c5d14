#include "engine/base/random.h"

#include <Random123/philox.h>

#include <cmath>

namespace engine {

namespace {

// 53 bits, moved by half a step away from zero.
double unit_interval(std::uint64_t bits) { return (double(bits >> 11) + 0.5) * 0x1p-53; }

}  // namespace

std::array<std::uint64_t, 2> random_words(std::uint64_t seed, Stream stream, std::uint64_t n,
                                          std::uint32_t lane) {
  const r123::Philox4x32 philox;
  const r123::Philox4x32::ctr_type counter{
      {std::uint32_t(n), std::uint32_t(n >> 32), static_cast<std::uint32_t>(stream), lane}};
  const r123::Philox4x32::key_type key{{std::uint32_t(seed), std::uint32_t(seed >> 32)}};
  const auto block = philox(counter, key);
  return {(std::uint64_t(block[1]) << 32) | block[0], (std::uint64_t(block[3]) << 32) | block[2]};
}

std::uint64_t random_bits(std::uint64_t seed, Stream stream, std::uint64_t n, std::uint32_t lane) {
  return random_words(seed, stream, n, lane)[0];
}

std::array<double, 2> normal_pair(std::uint64_t seed, Stream stream, std::uint64_t n,
                                  std::uint32_t lane) {
  const auto words = random_words(seed, stream, n, lane);
  const double radius = std::sqrt(-2 * std::log(unit_interval(words[0])));
  const double angle = 2 * 3.14159265358979323846 * unit_interval(words[1]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

std::uint64_t mixed_seed(std::uint64_t a, std::uint64_t b) {
  // The finaliser of SplitMix64, after one odd multiple of `a` per unit of it.
  std::uint64_t z = a * 0x9e3779b97f4a7c15ull + b + 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

double uniform(std::uint64_t seed, Stream stream, std::uint64_t n, std::uint32_t lane) {
  return unit_interval(random_bits(seed, stream, n, lane));
}

double exponential(std::uint64_t seed, Stream stream, std::uint64_t n, std::uint32_t lane) {
  return -std::log(uniform(seed, stream, n, lane));
}

double normal(std::uint64_t seed, Stream stream, std::uint64_t n, std::uint32_t lane) {
  return normal_quantile(uniform(seed, stream, n, lane));
}

namespace {

double polynomial(const double* coefficients, int count, double x) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum = sum * x + coefficients[i];
  return sum;
}

}  // namespace

double normal_quantile(double u) {
  // Rational approximation of the inverse normal distribution by P. J. Acklam (relative error below
  // 1.2e-9), polished by one Halley step on the complementary error function.
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                          6.680131188771972e+01,  -1.328068155288572e+01, 1.0};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00, 1.0};
  constexpr double tail = 0.02425;
  double x = 0;
  if (u < tail || u > 1 - tail) {
    const double q = std::sqrt(-2 * std::log(u < tail ? u : 1 - u));
    x = polynomial(c, 6, q) / polynomial(d, 5, q);
    if (u > 1 - tail) x = -x;
  } else {
    const double q = u - 0.5;
    const double r = q * q;
    x = polynomial(a, 6, r) * q / polynomial(b, 6, r);
  }
  const double error = normal_below(x) - u;
  const double step = error * std::sqrt(2 * 3.14159265358979323846) * std::exp(x * x / 2);
  return x - step / (1 + x * step / 2);
}

}  // namespace engine
