#include "engine/tasks/serve/serve_interval.h"

#include <algorithm>
#include <cmath>

#include "engine/step/interval.h"
#include "engine/tasks/serve/serve_report.h"

namespace engine {
namespace {

// Nine in ten lie within so many standard deviations.
constexpr double kNineInTen = 1.6449;
// Beyond these nothing is told apart from certainty.
constexpr double kCertain = 4;

// An engine runs more in a step than the operations that are listed here, and overlaps others: beside what kernels and host
// are off, the steps of nine models in ten take between these factors of the predicted time (the same closed loops).
constexpr double kLowOfSteps = 0.9, kHighOfSteps = 1.1;

// First tokens wait for more than steps: for seats and budgets that nobody stated, for other prompts that come at the same
// moment, for the way to the client. Nine mean times to first token in ten lie between these factors of the predicted one, beside
// what steps are off: closed loops of ten models under three engines, each model weighed alike (`llmsweep validate serving`,
// tools/validate_serving/README.md).
struct Spread {
  double low = 0.8, high = 1.25;
};
// Prompts of mixtures meet kernels and routing that differ most from engine to engine.
constexpr double kHighOfExperts = 2.25;
// Where another deployment reads prompts, the two agree on where the KV goes, which is not modelled: seen of one engine.
constexpr double kHighOfHandover = 3;

// The larger of two independent factors and a bit of the other: logarithms add up in squares.
double together(double one, double other) {
  return std::exp(std::hypot(std::log(one), std::log(other)));
}

Spread first_token_spread(const Scenario& scenario) {
  Spread spread;
  if (scenario.model.is_moe()) spread.high = kHighOfExperts;
  if (scenario.prefill.present) spread.high = together(spread.high, kHighOfHandover);
  return spread;
}

// What first tokens wait for besides, in their interval and in that of whole answers.
void widen_first_tokens(const Scenario& scenario, Metrics& metrics) {
  if (!(metrics.ttft_low.value > 0)) return;
  const Spread spread = first_token_spread(scenario);
  const Seconds low = metrics.ttft / together(metrics.ttft / metrics.ttft_low, spread.low);
  const Seconds high = metrics.ttft * together(metrics.ttft_high / metrics.ttft, spread.high);
  metrics.e2e_low -= metrics.ttft_low - low;
  metrics.e2e_high += high - metrics.ttft_high;
  metrics.ttft_low = low;
  metrics.ttft_high = high;
}

// Step times at a number of standard deviations of their logarithm; the two sides may differ.
class ScaleRange {
 public:
  explicit ScaleRange(const std::vector<KernelRow>& kernels) {
    for (std::size_t p = 0; p < low_.size(); ++p) {
      const Phase phase = static_cast<Phase>(p);
      Seconds time;
      for (const KernelRow& row : kernels) {
        if (row.phase == phase) time += row.work.exposed();
      }
      if (time.value <= 0) continue;  // slower or faster steps may still have some: as predicted
      const Interval interval = interval_of(kernels, phase);
      low_[p] = 1 / together(time / std::max(kFastest * time, interval.low), kLowOfSteps);
      high_[p] = together(interval.high / time, kHighOfSteps);
    }
  }
  StepScale at(double deviations) const {
    StepScale scale;
    for (std::size_t p = 0; p < scale.size(); ++p) {
      const double end = deviations < 0 ? low_[p] : high_[p];
      scale[p] = std::pow(end, std::abs(deviations) / kNineInTen);
    }
    return scale;
  }

 private:
  // Sums of squares may reach below nothing; no kernel is ten times faster than predicted.
  static constexpr double kFastest = 0.1;
  StepScale low_ = kAsPredicted, high_ = kAsPredicted;
};

// The three figures in order: what is slower in steps may, by an accident of batching, be faster.
template <class Value>
void order(Value value, Value one, Value other, Value& low, Value& high) {
  low = std::min({value, one, other});
  high = std::max({value, one, other});
}

}  // namespace

void report_intervals(const Scenario& scenario, const Simulate& simulate, Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  const Slo& slo = served_slo(scenario);
  const ScaleRange range(outcome.kernels);
  struct Run {
    ServedMeans means;
    bool met;
  };
  const auto run_at = [&](double deviations) {
    ServingStats& stats = simulate(range.at(deviations));
    return Run{served_means(stats), meets(slo, stats)};
  };
  const Run fast = run_at(-kNineInTen), slow = run_at(kNineInTen);
  order(metrics.ttft, fast.means.ttft, slow.means.ttft, metrics.ttft_low, metrics.ttft_high);
  order(metrics.tpot, fast.means.tpot, slow.means.tpot, metrics.tpot_low, metrics.tpot_high);
  order(metrics.e2e, fast.means.e2e, slow.means.e2e, metrics.e2e_low, metrics.e2e_high);
  widen_first_tokens(scenario, metrics);
  order(metrics.output, fast.means.output, slow.means.output, metrics.output_low,
        metrics.output_high);
  order(metrics.throughput, fast.means.throughput, slow.means.throughput, metrics.throughput_low,
        metrics.throughput_high);
  if (!slo.any()) return;

  // The SLO holds up to some slowness: between these.
  double holds = -kCertain, fails = kCertain;
  const auto look = [&](double deviations, bool met) { (met ? holds : fails) = deviations; };
  look(-kNineInTen, fast.met);
  if (fast.met) look(0, metrics.slo_met > 0);
  if (fast.met && metrics.slo_met > 0) look(kNineInTen, slow.met);
  // Whether it holds even there, or fails even there.
  if (holds == kNineInTen && run_at(kCertain).met) holds = fails;
  if (fails == -kNineInTen && !run_at(-kCertain).met) fails = holds;
  constexpr double fine_enough = 0.1;
  while (fails - holds > fine_enough) {
    const double middle = (holds + fails) / 2;
    look(middle, run_at(middle).met);
  }
  metrics.slo_probability = 0.5 * std::erfc(-(holds + fails) / 2 / std::sqrt(2.0));
}

}  // namespace engine
