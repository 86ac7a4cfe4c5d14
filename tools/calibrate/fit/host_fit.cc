#include "tools/calibrate/fit/host_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "engine/evaluate.h"
#include "tools/calibrate/fit/folds.h"
#include "tools/calibrate/fit/minimise.h"

namespace tools {
namespace {

using engine::HostSettings;
using engine::Seconds;

// A term of a host that steps may tell, and the most that anybody measured of it, with room.
struct Term {
  const char* field;
  Seconds HostSettings::*value;
  double most;
};
constexpr std::array kTerms{
    Term{"kernel_gap", &HostSettings::kernel_gap, 20e-6},
    Term{"launch_cost", &HostSettings::launch_cost, 200e-6},
    Term{"layer_cost", &HostSettings::layer_cost, 10e-3},
    Term{"step_overhead", &HostSettings::step_overhead, 50e-3},
    Term{"step_per_sequence", &HostSettings::step_per_sequence, 1e-3},
};
constexpr double kLeast = 1e-9;

double predicted(const TimedStep& step, const HostSettings& host,
                 const engine::Resources& resources) {
  engine::Scenario scenario = step.scenario;
  scenario.host = host;
  return engine::evaluate(scenario, resources).metrics.step_time.value;
}

// One host's terms, of which `free` are unknown.
class Search {
 public:
  Search(std::span<const TimedStep> steps, const engine::Resources& resources)
      : steps_(steps), resources_(resources), start_(steps.front().scenario.host) {}

  double mean_miss(const HostSettings& host, std::optional<std::size_t> left_out) const {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (left_out && i % kFolds == *left_out) continue;
      sum += std::abs(std::log(predicted(steps_[i], host, resources_) / steps_[i].seconds));
      ++count;
    }
    return sum / count;
  }

  // Terms of which twice or half of what all of them together are fitted to would be further from the steps, by a five-hundredth in the mean.
  // What hides behind the device is not among them.
  std::vector<Term> told() const {
    const std::vector<Term> all(kTerms.begin(), kTerms.end());
    const HostSettings best = fitted(all, std::nullopt);
    std::vector<Term> found;
    for (const Term& term : kTerms) {
      const bool shows = std::ranges::any_of(std::array{0.5, 2.0}, [&](double times) {
        HostSettings other = best;
        other.*term.value = best.*term.value * times;
        return mean_miss(other, std::nullopt) - mean_miss(best, std::nullopt) > 0.002;
      });
      if (shows) found.push_back(term);
    }
    return found;
  }

  HostSettings fitted(const std::vector<Term>& free, std::optional<std::size_t> left_out) const {
    std::vector<Unknown> unknowns;
    for (const Term& term : free) {
      const double start = std::clamp((start_.*term.value).value, kLeast, term.most);
      unknowns.push_back({term.field, start, kLeast, term.most});
    }
    // Where steps cannot tell two terms apart, the nearer pair is taken.
    constexpr double pull = 2e-4;
    const auto miss = [&](std::span<const double> values) {
      double away = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        away += std::abs(std::log(values[i] / unknowns[i].start));
      }
      return mean_miss(with(free, values), left_out) + pull * away;
    };
    if (free.empty()) return start_;
    return with(free,
                minimise(miss, unknowns, {.rounds = 12, .evaluations = 400, .cycles = 2}).point);
  }

  Scored scored(std::size_t step, const HostSettings& host) const {
    return {steps_[step].seconds, predicted(steps_[step], host, resources_)};
  }
  const HostSettings& start() const { return start_; }

 private:
  HostSettings with(const std::vector<Term>& free, std::span<const double> values) const {
    HostSettings host = start_;
    for (std::size_t i = 0; i < free.size(); ++i) host.*free[i].value = Seconds{values[i]};
    return host;
  }

  std::span<const TimedStep> steps_;
  const engine::Resources& resources_;
  HostSettings start_;
};

std::string quantity(Seconds time) {
  return time.value >= 1e-3 ? fmt::format("{:.3g} ms", time.value * 1e3)
                            : fmt::format("{:.3g} us", time.value * 1e6);
}

}  // namespace

HostFit fit_host(std::span<const TimedStep> steps, const engine::Resources& resources) {
  const Search search(steps, resources);
  const std::vector<Term> free = search.told();
  HostFit fit;
  fit.host = search.fitted(free, std::nullopt);
  for (const Term& term : kTerms) {
    const Seconds value = fit.host.*term.value;
    const bool told = std::ranges::find(free, term.field, &Term::field) != free.end();
    fit.terms.push_back({term.field, value, value, value, told});
  }
  std::vector<Scored> before(steps.size()), unseen(steps.size());
  for (std::size_t fold = 0; fold < kFolds; ++fold) {
    const HostSettings others = search.fitted(free, fold);
    for (std::size_t t = 0; t < kTerms.size(); ++t) {
      fit.terms[t].low = std::min(fit.terms[t].low, others.*kTerms[t].value);
      fit.terms[t].high = std::max(fit.terms[t].high, others.*kTerms[t].value);
    }
    for (std::size_t i = fold; i < steps.size(); i += kFolds) {
      before[i] = search.scored(i, search.start());
      unseen[i] = search.scored(i, others);
    }
  }
  fit.before = error_summary(before);
  fit.unseen = error_summary(unseen);
  return fit;
}

std::string host_fit_text(const HostFit& fit, const std::string& from) {
  std::string text = fmt::format(
      "# Fitted to {} measured steps: {:.1f}% off with {}, {:.1f}% on steps left out of the fit.\n"
      "from: {}\n",
      fit.before.rows, 100 * fit.before.mean, from, 100 * fit.unseen.mean, from);
  for (const FittedTerm& term : fit.terms) {
    if (!term.told) continue;
    text += fmt::format("{}: {}  # {} to {} with a fifth of the steps left out\n", term.field,
                        quantity(term.value), quantity(term.low), quantity(term.high));
  }
  return text;
}

}  // namespace tools
