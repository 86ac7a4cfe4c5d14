#include "tools/suite/suite_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "results/schema.h"
#include "sweep/language/suggest.h"
#include "sweep/language/sweep_spec.h"
#include "sweep/run/runner.h"
#include "tools/suite/suite_scenarios.h"

namespace tools {
namespace {

// Figures of every point, and the kernels' time by tier.
struct Gathered {
  std::map<std::uint64_t, std::vector<double>>
      figures;  // by position, in the order of metric_table()
  std::array<double, 3> tier_seconds{};
  std::string trouble;
  std::size_t points = 0;

  void add(const sweep::Point& point, const engine::Outcome& outcome) {
    ++points;
    if (outcome.status != engine::Status::ok) {
      if (trouble.empty()) trouble = fmt::format("point {}: {}", point.index, outcome.reason);
      return;
    }
    const double* values = results::metric_values(outcome.metrics);
    figures[point.index].assign(values, values + results::kMetrics);
    for (const engine::KernelRow& row : outcome.kernels) {
      tier_seconds[std::size_t(row.tier)] += row.work.exposed().value;
    }
  }
};

class GatheringSink final : public sweep::RowSink {
 public:
  explicit GatheringSink(Gathered& into) : into_(into) {}
  std::unique_ptr<sweep::ChunkRows> start_chunk() override {
    return std::make_unique<Rows>(into_, mutex_);
  }
  void finish_chunk(std::unique_ptr<sweep::ChunkRows>, sweep::IndexRange,
                    const sweep::Tally&) override {}
  void flush() override {}

 private:
  struct Rows final : sweep::ChunkRows {
    Rows(Gathered& gathered, std::mutex& guard) : into(gathered), mutex(guard) {}
    void add(const sweep::Point& point, const engine::Outcome& outcome) override {
      const std::lock_guard lock(mutex);
      into.add(point, outcome);
    }
    Gathered& into;
    std::mutex& mutex;
  };
  Gathered& into_;
  std::mutex mutex_;
};

int metric_number(const std::string& column) {
  const auto& metrics = results::metric_table();
  const auto found = std::ranges::find(metrics, column, &results::Metric::column);
  return found == metrics.end() ? -1 : int(found - metrics.begin());
}

std::string unknown_metric(const std::string& column) {
  std::vector<std::string> names;
  for (const results::Metric& metric : results::metric_table()) names.push_back(metric.column);
  return "there is no figure '" + column + "'; " + sweep::suggestion(column, names, "figures");
}

// What an expectation is about at one position; NaN where there is no such figure.
double value_at(const Gathered& gathered, int metric, std::uint64_t position) {
  const auto found = gathered.figures.find(position);
  const double unit = results::metric_table()[std::size_t(metric)].unit.per_base;
  return found == gathered.figures.end() ? NAN : found->second[std::size_t(metric)] * unit;
}

// Empty: it holds.
std::string broken(const sweep::Expectation& expectation, const Gathered& gathered) {
  const int metric = metric_number(expectation.column);
  if (metric < 0) return unknown_metric(expectation.column);
  const auto judge = [&](double value) -> std::string {
    if (value >= expectation.low && value <= expectation.high) return "";
    return fmt::format("expected {}, found {:.6g}", sweep::text_of(expectation), value);
  };
  if (expectation.at) {
    double value = value_at(gathered, metric, *expectation.at);
    if (expectation.over) value /= value_at(gathered, metric, *expectation.over);
    return judge(value);
  }
  if (gathered.figures.empty()) return "no point works";
  for (const auto& [position, figures] : gathered.figures) {
    std::string wrong = judge(value_at(gathered, metric, position));
    if (!wrong.empty()) return fmt::format("{} at point {}", wrong, position);
  }
  return "";
}

std::string range_of(const std::string& column, const Gathered& gathered) {
  const int metric = metric_number(column);
  if (metric < 0) return "";
  double low = INFINITY, high = -INFINITY;
  for (const auto& [position, figures] : gathered.figures) {
    const double value = value_at(gathered, metric, position);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (!(low <= high)) return "";
  return low == high ? fmt::format("{:.4g}", low) : fmt::format("{:.4g} to {:.4g}", low, high);
}

void judge(const sweep::SweepSpec& spec, const Gathered& gathered, SuiteResult& result) {
  result.points = gathered.points;
  result.working = gathered.figures.size();
  result.trouble = gathered.trouble;
  for (const sweep::Expectation& expectation : spec.expectations) {
    if (std::ranges::find(result.metrics, expectation.column) == result.metrics.end()) {
      result.metrics.push_back(expectation.column);
    }
    ++result.checks;
    const std::string wrong = broken(expectation, gathered);
    if (wrong.empty()) {
      ++result.held;
    } else if (result.trouble.empty()) {
      result.trouble = wrong;
    }
  }
  if (!result.metrics.empty()) result.range = range_of(result.metrics.front(), gathered);
  if (result.checks == 0 && result.trouble.empty()) result.trouble = "nothing is expected of it";
  double all = 0;
  for (const double seconds : gathered.tier_seconds) all += seconds;
  for (std::size_t i = 0; i < result.tiers.size() && all > 0; ++i) {
    result.tiers[i] = gathered.tier_seconds[i] / all;
  }
  result.support = result.trouble.empty() ? Support::supported : Support::partly;
}

// "I5.4" before "I5.10", families as the list has them.
std::size_t place_in_suite(const std::string& id) {
  return std::size_t(std::ranges::find(kSuiteScenarios, id, &SuiteScenario::id) -
                     kSuiteScenarios.begin());
}

}  // namespace

SuiteResult run_scenario(const std::filesystem::path& file, const sweep::Library& library,
                         int threads) {
  SuiteResult result{.id = file.stem().string(), .support = Support::partly};
  const auto spec = sweep::read_sweep(file, library);
  if (!spec) {
    result.trouble = spec.mistakes().front().what;
    return result;
  }
  const auto begin = std::chrono::steady_clock::now();
  Gathered gathered;
  GatheringSink sink(gathered);
  sweep::StopSignal never;
  sweep::Progress unseen;
  sweep::run_points(spec->space, sweep::IndexSet(sweep::IndexRange{0, spec->space.size()}), sink,
                    {.resources = spec->resources.get(), .threads = threads}, never, unseen);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  judge(*spec, gathered, result);
  return result;
}

std::vector<SuiteResult> run_suite(const SuiteOptions& options, const sweep::Library& library) {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder)) {
    if (entry.path().extension() == ".yaml") ids.insert(entry.path().stem().string());
  }
  if (options.standard) {
    for (const SuiteScenario& scenario : kSuiteScenarios) ids.emplace(scenario.id);
  }
  std::vector<std::string> order(ids.begin(), ids.end());
  std::ranges::stable_sort(order, {}, place_in_suite);
  std::vector<SuiteResult> results;
  for (const std::string& id : order) {
    if (!id.starts_with(options.only)) continue;
    const std::filesystem::path file = options.folder / (id + ".yaml");
    const std::size_t place = place_in_suite(id);
    SuiteResult& result = results.emplace_back(SuiteResult{.id = id, .trouble = "no spec"});
    if (std::filesystem::exists(file)) result = run_scenario(file, library, options.threads);
    if (options.standard && place < kSuiteScenarios.size()) {
      result.what = kSuiteScenarios[place].what;
    }
  }
  return results;
}

}  // namespace tools
