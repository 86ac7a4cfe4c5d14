#include "tools/compare/point_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "results/schema.h"
#include "results/text_table.h"
#include "tools/compare/attribution.h"
#include "tools/compare/drift.h"
#include "tools/query/answer.h"

namespace tools {
namespace {

using results::TextTable;

// What a point's time is made of, in seconds.
struct TimeParts {
  double total = 0;
  std::map<std::string, double> parts;
};

double time_of(const engine::Outcome& outcome) {
  const engine::Metrics& metrics = outcome.metrics;
  for (const engine::Seconds time : {metrics.step_time, metrics.iteration_time, metrics.e2e}) {
    if (!std::isnan(time.value)) return time.value;
  }
  return 0;
}

TimeParts parts_of(const engine::Outcome& outcome) {
  TimeParts time{.total = time_of(outcome)};
  const double queue = outcome.metrics.queue.value;
  double sum = 0;
  for (const engine::KernelRow& row : outcome.kernels) sum += row.work.exposed().value;
  const double scale = kernel_scale(sum, time.total, queue);
  double rest = time.total;
  for (const engine::KernelRow& row : outcome.kernels) {
    const double seconds = row.work.exposed().value * scale;
    time.parts[std::string(engine::name_of(row.family))] += seconds;
    rest -= seconds;
  }
  if (!std::isnan(queue)) {
    time.parts["queue"] = queue;
    rest -= queue;
  }
  // Sums of floating-point numbers leave crumbs that explain nothing.
  if (std::abs(rest) > 1e-9 * time.total) time.parts["rest"] = rest;
  return time;
}

class DifferenceTable {
 public:
  explicit DifferenceTable(const std::vector<std::string>& columns) {
    for (const std::string& name : columns) table_.columns.emplace_back(name);
  }
  void add(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) table_.columns[i].append(cells[i]);
  }
  std::string text() const { return to_text(table_, AnswerFormat::text); }

 private:
  TextTable table_;
};

std::string cell(double value) { return std::isnan(value) ? "" : fmt::format("{:.6g}", value); }
std::string exact_percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.4g}", 100 * share) : "";
}

std::string figures_text(const engine::Outcome& one, const engine::Outcome& other,
                         const std::string& name, const std::string& other_name) {
  DifferenceTable table({"figure", name, other_name, "percent"});
  const double* before = results::metric_values(one.metrics);
  const double* after = results::metric_values(other.metrics);
  for (std::size_t i = 0; i < results::kMetrics; ++i) {
    const bool same = before[i] == after[i] || (std::isnan(before[i]) && std::isnan(after[i]));
    if (same) continue;
    const results::Metric& metric = results::metric_table()[i];
    table.add({metric.column, cell(before[i] * metric.unit.per_base),
               cell(after[i] * metric.unit.per_base),
               exact_percent(relative_change(before[i], after[i]))});
  }
  return table.text();
}

std::string time_text(const TimeParts& one, const TimeParts& other, const std::string& name,
                      const std::string& other_name) {
  std::map<std::string, std::pair<double, double>> all;
  for (const auto& [part, seconds] : one.parts) all[part].first = seconds;
  for (const auto& [part, seconds] : other.parts) all[part].second = seconds;
  std::vector<std::pair<std::string, std::pair<double, double>>> order(all.begin(), all.end());
  std::ranges::stable_sort(order, std::greater{}, [](const auto& part) {
    return std::abs(part.second.second - part.second.first);
  });
  DifferenceTable table({"part", "kind", name + "_s", other_name + "_s", "percent_of_time"});
  for (const auto& [part, seconds] : order) {
    const bool waits = part == "queue" || part == "rest";
    table.add({part, waits ? "waiting" : std::string(kind_of_family(part)), cell(seconds.first),
               cell(seconds.second), exact_percent((seconds.second - seconds.first) / one.total)});
  }
  table.add({"all", "", cell(one.total), cell(other.total),
             exact_percent(relative_change(one.total, other.total))});
  return table.text();
}

std::string state_text(std::uint64_t index, const engine::Outcome& outcome) {
  return fmt::format("point {}: {}{}\n", index, engine::name_of(outcome.status),
                     outcome.reason.empty() ? "" : ": " + outcome.reason);
}

}  // namespace

std::string difference_text(const engine::Outcome& one, const engine::Outcome& other,
                            std::uint64_t one_index, std::uint64_t other_index) {
  if (one.status != engine::Status::ok || other.status != engine::Status::ok) {
    return state_text(one_index, one) + state_text(other_index, other);
  }
  const std::string name = fmt::format("point_{}", one_index);
  const std::string other_name = fmt::format("point_{}", other_index);
  return "\n" + figures_text(one, other, name, other_name) + "\nwhere the time goes\n" +
         time_text(parts_of(one), parts_of(other), name, other_name);
}

}  // namespace tools
