#include "engine/tasks/serve/serve_interval.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "engine/step/interval.h"
#include "engine/tasks/serve/serve_report.h"
#include "engine/tasks/serve/slo_judgement.h"

namespace engine {
namespace {

// Standard deviations to either side within which nine cases in ten lie.
constexpr double kNineInTen = 1.6449;
// Beyond these nothing is told apart from certainty.
constexpr double kCertain = 4;

// An engine runs more in a step than the operations that are listed here, and overlaps others: beside what kernels and host
// are off, the steps of nine models in ten take between these factors of the predicted time (the same closed loops).
constexpr double kLowOfSteps = 0.9, kHighOfSteps = 1.1;

// First tokens wait for more than steps: for seats and budgets that are not stated, for other prompts that come at the same moment, for the
// way to the client. Nine mean times to first token in ten lie between these factors of the predicted one, besides errors of steps: closed
// loops of ten models under three engines, each model weighed alike (`llmsweep validate serving`,
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

// A load simulated with steps that are some standard deviations slower than predicted.
struct Trial {
  double deviations = 0;
  bool holds_between_tokens = false;
  double log_room = 0;  // of the factor that first tokens may take besides
};

double normal_below(double deviations) { return 0.5 * std::erfc(-deviations / std::sqrt(2.0)); }

// How likely an SLO is met. Steps are off by one factor. What first tokens wait for besides is another factor, independent of it.
class SloChance {
 public:
  using TryAt = std::function<Trial(double deviations)>;
  SloChance(const Slo& slo, const Spread& spread, TryAt try_at)
      : between_tokens_(limited(slo.tpot) || limited(slo.itl)),
        first_tokens_(limited(slo.ttft) || limited(slo.e2e)),
        spread_(spread),
        try_at_(std::move(try_at)) {}

  void know(const Trial& trial) { trials_.push_back(trial); }

  double value() {
    constexpr double fine = 0.1, coarse = 0.4;
    const auto between_tokens = [](const Trial& trial) { return trial.holds_between_tokens; };
    const auto all = [](const Trial& trial) {
      return trial.holds_between_tokens && trial.log_room >= 0;
    };
    const double last = between_tokens_ ? lost_at(between_tokens, fine) : kCertain;
    if (!first_tokens_) return normal_below(last);
    // Room for first tokens may change fast around where it is used up: trials there make it known.
    lost_at(all, coarse);
    std::ranges::sort(trials_, {}, &Trial::deviations);
    constexpr int parts = 1000;
    const double width = (last + kCertain) / parts;
    double chance = 0;
    for (int i = 0; i < parts; ++i) {
      const double from = -kCertain + i * width;
      chance += (normal_below(from + width) - normal_below(from)) *
                first_tokens_in_time(log_room(from + width / 2));
    }
    return chance;
  }

 private:
  // The slowness up to which it holds, if it does so up to some.
  template <class Holds>
  double lost_at(const Holds& holds, double fine_enough) {
    double holding = -kCertain, failing = kCertain;
    const auto look = [&](const Trial& trial) {
      double& end = holds(trial) ? holding : failing;
      if (trial.deviations > holding && trial.deviations < failing) end = trial.deviations;
    };
    for (const Trial& trial : trials_) look(trial);
    // Whether it holds even there, or fails even there.
    if (failing == kCertain && holds(tried(kCertain))) return kCertain;
    if (holding == -kCertain && !holds(tried(-kCertain))) return -kCertain;
    while (failing - holding > fine_enough) look(tried((holding + failing) / 2));
    return (holding + failing) / 2;
  }
  const Trial& tried(double deviations) {
    const auto known = std::ranges::find(trials_, deviations, &Trial::deviations);
    if (known != trials_.end()) return *known;
    return trials_.emplace_back(try_at_(deviations));
  }
  // Straight between trials.
  double log_room(double deviations) const {
    const auto after = std::ranges::lower_bound(trials_, deviations, {}, &Trial::deviations);
    if (after == trials_.begin()) return after->log_room;
    const Trial& before = *(after - 1);
    if (after == trials_.end()) return before.log_room;
    const double share = (deviations - before.deviations) / (after->deviations - before.deviations);
    return before.log_room + share * (after->log_room - before.log_room);
  }
  double first_tokens_in_time(double log_room) const {
    const double end = log_room < 0 ? -std::log(spread_.low) : std::log(spread_.high);
    return normal_below(log_room / end * kNineInTen);
  }

  bool between_tokens_, first_tokens_;
  Spread spread_;
  TryAt try_at_;
  std::vector<Trial> trials_;
};

// Beyond these factors everything is early enough, or nothing.
double log_of_room(double room) {
  constexpr double most = 20;
  return std::clamp(std::log(room), -most, most);
}

}  // namespace

void report_intervals(const Scenario& scenario, ServingStats& predicted, const Simulate& simulate,
                      Outcome& outcome) {
  Metrics& metrics = outcome.metrics;
  const Slo& slo = served_slo(scenario);
  const ScaleRange range(outcome.kernels);
  const auto trial_of = [&slo](double deviations, ServingStats& stats) {
    return Trial{deviations, meets_between_tokens(slo, stats),
                 log_of_room(first_token_room(slo, stats))};
  };
  SloChance chance(slo, first_token_spread(scenario), [&](double deviations) {
    return trial_of(deviations, simulate(range.at(deviations)));
  });
  const auto run_at = [&](double deviations) {
    ServingStats& stats = simulate(range.at(deviations));
    chance.know(trial_of(deviations, stats));
    return served_means(stats);
  };
  chance.know(trial_of(0, predicted));
  const ServedMeans fast = run_at(-kNineInTen), slow = run_at(kNineInTen);
  order(metrics.ttft, fast.ttft, slow.ttft, metrics.ttft_low, metrics.ttft_high);
  order(metrics.tpot, fast.tpot, slow.tpot, metrics.tpot_low, metrics.tpot_high);
  order(metrics.e2e, fast.e2e, slow.e2e, metrics.e2e_low, metrics.e2e_high);
  widen_first_tokens(scenario, metrics);
  order(metrics.output, fast.output, slow.output, metrics.output_low, metrics.output_high);
  order(metrics.throughput, fast.throughput, slow.throughput, metrics.throughput_low,
        metrics.throughput_high);
  if (slo.any()) metrics.slo_probability = chance.value();
}

}  // namespace engine
