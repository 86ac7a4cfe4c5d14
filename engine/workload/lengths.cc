#include "engine/workload/lengths.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/random.h"

namespace engine {
namespace {

// A length between `low` and `high` whose density falls with x^-exponent.
double zipf_length(double u, double low, double high, double exponent) {
  if (high <= low) return low;
  if (std::abs(exponent - 1) < 1e-9) return low * std::pow(high / low, u);
  const double power = 1 - exponent;
  const double a = std::pow(low, power), b = std::pow(high, power);
  return std::pow(a + u * (b - a), 1 / power);
}

double power_integral(double low, double high, double power) {
  if (std::abs(power + 1) < 1e-9) return std::log(high / low);
  return (std::pow(high, power + 1) - std::pow(low, power + 1)) / (power + 1);
}

double zipf_mean(double low, double high, double exponent) {
  if (high <= low) return low;
  return power_integral(low, high, 1 - exponent) / power_integral(low, high, -exponent);
}

// Where nothing is said of the longest.
double zipf_high(std::int64_t low, std::int64_t most) { return double(most > 0 ? most : 16 * low); }

double uniform_length(double u, double mean, double cv) {
  // A uniform distribution of this deviation reaches sqrt(3) deviations to each side; one about this mean no further than to
  // one token and as far beyond.
  const double reach = std::min(std::sqrt(3.0) * cv, 1 - 1 / mean);
  return mean * (1 + reach * (2 * u - 1));
}

std::int64_t whole_length(double tokens, std::int64_t most) {
  const double highest = most > 0 ? double(most) : 1e9;
  // Twice a request: a call of the library would be the dearer part.
  return std::int64_t(std::clamp(tokens, 1.0, highest) +
                      0.5);  // NOLINT(bugprone-incorrect-roundings)
}

}  // namespace

LengthSampler::LengthSampler(const Lengths& lengths, std::uint64_t seed, const Trace* trace)
    : lengths_(lengths), seed_(seed), trace_(trace) {
  const double prompt_variance = std::log1p(lengths.prompt_cv * lengths.prompt_cv);
  const double output_variance = std::log1p(lengths.output_cv * lengths.output_cv);
  prompt_log_deviation_ = std::sqrt(prompt_variance);
  output_log_deviation_ = std::sqrt(output_variance);
  prompt_log_mean_ = std::log(double(lengths.prompt)) - prompt_variance / 2;
  output_log_mean_ = std::log(double(lengths.output)) - output_variance / 2;
}

LengthPair LengthSampler::cut(double prompt, double output) const {
  LengthPair pair{whole_length(prompt, lengths_.prompt_max),
                  whole_length(output, lengths_.output_max)};
  if (lengths_.total_max > 0) {
    pair.prompt = std::min(pair.prompt, std::max<std::int64_t>(1, lengths_.total_max - 1));
    pair.output =
        std::min(pair.output, std::max<std::int64_t>(1, lengths_.total_max - pair.prompt));
  }
  return pair;
}

LengthPair LengthSampler::operator()(std::int64_t number) const {
  const std::uint64_t n = std::uint64_t(number);
  switch (lengths_.distribution) {
    case LengthKind::fixed:
      break;
    case LengthKind::uniform:
      return cut(uniform_length(uniform(seed_, Stream::prompt_lengths, n), double(lengths_.prompt),
                                lengths_.prompt_cv),
                 uniform_length(uniform(seed_, Stream::output_lengths, n), double(lengths_.output),
                                lengths_.output_cv));
    case LengthKind::lognormal: {
      const auto [a, b] = normal_pair(seed_, Stream::prompt_lengths, n);
      const double rho = lengths_.correlation;
      const double mixed = rho == 0 ? b : rho * a + std::sqrt(1 - rho * rho) * b;
      return cut(std::exp(prompt_log_mean_ + prompt_log_deviation_ * a),
                 std::exp(output_log_mean_ + output_log_deviation_ * mixed));
    }
    case LengthKind::zipf:
      return cut(
          zipf_length(uniform(seed_, Stream::prompt_lengths, n), double(lengths_.prompt),
                      zipf_high(lengths_.prompt, lengths_.prompt_max), lengths_.zipf_exponent),
          zipf_length(uniform(seed_, Stream::output_lengths, n), double(lengths_.output),
                      zipf_high(lengths_.output, lengths_.output_max), lengths_.zipf_exponent));
    case LengthKind::empirical: {
      const double u = uniform(seed_, Stream::prompt_lengths, n);
      const std::size_t row = std::min(std::size_t(u * double(trace_->size())), trace_->size() - 1);
      return cut(double(trace_->prompt[row]), double(trace_->output[row]));
    }
  }
  return cut(double(lengths_.prompt), double(lengths_.output));
}

MeanLengths LengthSampler::mean() const {
  const auto mean_of = [](const auto& tokens) {
    return std::accumulate(tokens.begin(), tokens.end(), 0.0) / double(tokens.size());
  };
  if (lengths_.distribution == LengthKind::empirical) {
    return {mean_of(trace_->prompt), mean_of(trace_->output)};
  }
  if (lengths_.distribution == LengthKind::zipf) {
    const double exponent = lengths_.zipf_exponent;
    return {zipf_mean(double(lengths_.prompt), zipf_high(lengths_.prompt, lengths_.prompt_max),
                      exponent),
            zipf_mean(double(lengths_.output), zipf_high(lengths_.output, lengths_.output_max),
                      exponent)};
  }
  return {double(lengths_.prompt), double(lengths_.output)};
}

}  // namespace engine
