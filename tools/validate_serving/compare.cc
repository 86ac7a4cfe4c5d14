#include "tools/validate_serving/compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "engine/evaluate.h"
#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/tables/quantile.h"

namespace tools {
namespace {

constexpr std::string_view kTtft = "ttft_mean_s";
constexpr std::string_view kTpot = "tpot_mean_s";
constexpr std::string_view kRate = "output_tokens_per_s";

// Tokens a second of a closed loop: every client always has one request under way.
double closed_rate(const engine::Load& load, double ttft, double tpot) {
  const double output = double(load.lengths.output);
  return double(load.clients) * output / (ttft + tpot * (output - 1));
}

const Figure* find_figure(const ComparedCase& compared, std::string_view name) {
  const auto found = std::ranges::find(compared.figures, name, &Figure::name);
  return found == compared.figures.end() ? nullptr : &*found;
}

std::vector<Scored> scored(const std::vector<const ComparedCase*>& cases, std::string_view name) {
  std::vector<Scored> rows;
  for (const ComparedCase* compared : cases) {
    if (const Figure* figure = find_figure(*compared, name)) {
      rows.push_back({.measured = figure->measured,
                      .predicted = figure->predicted,
                      .lo = figure->low,
                      .hi = figure->high});
    }
  }
  return rows;
}

std::string error_cells(const ErrorSummary& errors) {
  return fmt::format("{:>7.1f}{:>7.1f}{:>7.1f}{:>+8.1f}{:>7.0f}{:>6.0f}", 100 * errors.mean,
                     100 * errors.median, 100 * errors.p90, 100 * errors.bias,
                     100 * errors.coverage, 100 * errors.width);
}

engine::Outcome with_intervals(engine::Scenario scenario, const engine::Resources& resources) {
  scenario.output.intervals = true;
  return engine::evaluate(scenario, resources);
}

// Figures of a list of values, measured and predicted.
void add_percentiles(const std::string& name, std::vector<double> measured,
                     std::vector<double> predicted, std::vector<Figure>& figures) {
  for (const auto& [suffix, share] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}) {
    figures.push_back({fmt::format("{}_{}_s", name, suffix), quantile(measured, share),
                       quantile(predicted, share)});
  }
}

// The middle of the single requests' errors, as a figure around 1.
void add_request_error(const std::string& name, const std::vector<double>& measured,
                       const std::vector<double>& predicted, std::vector<Figure>& figures) {
  std::vector<double> errors;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (measured[i] > 0) errors.push_back(std::abs(predicted[i] / measured[i] - 1));
  }
  if (errors.empty()) return;
  figures.push_back({fmt::format("{}_of_a_request", name), 1, 1 + quantile(errors, 0.5)});
}

ComparedCase means_of(const engine::Scenario& scenario, const ServedCase& served,
                      const engine::Resources& resources) {
  const engine::Outcome outcome = with_intervals(scenario, resources);
  const bool drafts = scenario.speculation.tokens > 0;
  ComparedCase compared{.served = &served,
                        .variant = drafts ? "transfer, drafts" : "transfer",
                        .scenario = &scenario};
  if (outcome.status != engine::Status::ok) {
    compared.failure = outcome.reason;
    return compared;
  }
  const engine::Metrics& metrics = outcome.metrics;
  const auto rate = [&](engine::Seconds ttft, engine::Seconds tpot) {
    return closed_rate(served.scenario.load, ttft.value, tpot.value);
  };
  compared.kv_blocks = metrics.kv_blocks;
  compared.figures = {
      {std::string(kTtft), served.ttft, metrics.ttft.value, metrics.ttft_low.value,
       metrics.ttft_high.value},
      {std::string(kTpot), served.tpot, metrics.tpot.value, metrics.tpot_low.value,
       metrics.tpot_high.value},
      {std::string(kRate), closed_rate(served.scenario.load, served.ttft, served.tpot),
       rate(metrics.ttft, metrics.tpot), rate(metrics.ttft_high, metrics.tpot_high),
       rate(metrics.ttft_low, metrics.tpot_low)}};
  return compared;
}

// How far apart measurement and prediction of a figure are, whichever is the longer.
double distance(const ComparedCase& compared, std::string_view name) {
  const Figure* figure = find_figure(compared, name);
  return figure == nullptr ? std::numeric_limits<double>::infinity()
                           : std::abs(std::log(figure->predicted / figure->measured));
}

}  // namespace

ComparedCase compare_means(const ServedCase& served, const engine::Resources& resources) {
  if (served.recipes.empty()) return means_of(served.scenario, served, resources);
  std::vector<ComparedCase> all;
  for (const engine::Scenario& recipe : served.recipes) {
    all.push_back(means_of(recipe, served, resources));
  }
  return *std::ranges::min_element(all, {},
                                   [](const ComparedCase& one) { return distance(one, kTpot); });
}

ComparedCase compare_throughput(const ServedCase& served, const engine::Resources& resources) {
  const engine::Outcome outcome = with_intervals(served.scenario, resources);
  ComparedCase compared{.served = &served, .variant = "transfer"};
  if (outcome.status != engine::Status::ok) {
    compared.failure = outcome.reason;
    return compared;
  }
  compared.kv_blocks = outcome.metrics.kv_blocks;
  const engine::Metrics& metrics = outcome.metrics;
  compared.figures = {{std::string(kRate), served.output_rate, metrics.output.value,
                       metrics.output_low.value, metrics.output_high.value}};
  return compared;
}

ComparedCase compare_replay(const MeasuredRun& run, const ReplayChoice& choice,
                            const engine::Resources& resources) {
  engine::Scenario scenario = run.served.scenario;
  scenario.calibration.tier = choice.tier;
  if (choice.given_blocks) scenario.serving.kv_blocks = run.kv_blocks;
  engine::Outcome outcome = engine::evaluate(scenario, resources);
  ComparedCase compared{.served = &run.served,
                        .variant = fmt::format("{}, {} blocks", engine::name_of(choice.tier),
                                               choice.given_blocks ? "given" : "predicted")};
  if (outcome.status != engine::Status::ok) {
    compared.failure = outcome.reason;
    return compared;
  }
  std::ranges::sort(outcome.requests, {}, &engine::RequestRow::number);
  std::vector<double> ttft, tpot, ttft_measured, tpot_measured;
  for (const engine::RequestRow& row : outcome.requests) {
    const RequestTimes& times = run.requests[std::size_t(row.number)];
    ttft.push_back((row.first_token - row.arrival).value);
    ttft_measured.push_back(times.ttft);
    if (row.output_tokens < 2) continue;
    tpot.push_back((row.finish - row.first_token).value / double(row.output_tokens - 1));
    tpot_measured.push_back(times.tpot);
  }
  compared.kv_blocks = outcome.metrics.kv_blocks;
  compared.figures = {{std::string(kTtft), run.served.ttft, outcome.metrics.ttft.value},
                      {std::string(kTpot), run.served.tpot, outcome.metrics.tpot.value},
                      {std::string(kRate), run.output_rate, outcome.metrics.output.value}};
  add_percentiles("ttft", ttft_measured, ttft, compared.figures);
  add_percentiles("tpot", tpot_measured, tpot, compared.figures);
  add_request_error("ttft", ttft_measured, ttft, compared.figures);
  add_request_error("tpot", tpot_measured, tpot, compared.figures);
  return compared;
}

std::string group_heading(std::string_view what) {
  std::string text = fmt::format("{:<32}{:>5}", "", "");
  for (const char* figure : {"ttft", "tpot", "throughput"}) text += fmt::format(" |{:^42}", figure);
  text += fmt::format("\n{:<32}{:>5}", what, "rows");
  for (int i = 0; i < 3; ++i) {
    text += fmt::format(" |{:>7}{:>7}{:>7}{:>8}{:>7}{:>6}", "mean %", "median", "p90", "bias",
                        "in 90%", "width");
  }
  return text + "\n";
}

std::string group_lines(const std::vector<ComparedCase>& cases, const GroupOf& group) {
  std::map<std::string, std::vector<const ComparedCase*>> groups;
  for (const ComparedCase& compared : cases) {
    if (compared.figures.empty()) continue;
    if (std::string label = group(compared); !label.empty()) {
      groups[std::move(label)].push_back(&compared);
    }
  }
  std::string text;
  for (const auto& [label, members] : groups) {
    text += fmt::format("{:<32}{:>5}", label, members.size());
    for (const std::string_view figure : {kTtft, kTpot, kRate}) {
      text += " |" + error_cells(error_summary(scored(members, figure)));
    }
    text += "\n";
  }
  return text;
}

std::string rate_lines(std::string_view what, const std::vector<ComparedCase>& cases,
                       const GroupOf& group) {
  std::map<std::string, std::vector<const ComparedCase*>> groups;
  std::vector<const ComparedCase*> all;
  for (const ComparedCase& compared : cases) {
    if (compared.figures.empty()) continue;
    groups[group(compared)].push_back(&compared);
    all.push_back(&compared);
  }
  std::string text = fmt::format("{:<32}{:>5}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}\n", what, "rows",
                                 "mean %", "median", "p90", "bias", "in 90%", "width", "rank");
  const auto add = [&text](std::string_view label,
                           const std::vector<const ComparedCase*>& members) {
    const ErrorSummary errors = error_summary(scored(members, kRate));
    text += fmt::format("{:<32}{:>5}{:>8.1f}{:>8.1f}{:>8.1f}{:>+8.1f}{:>8.0f}{:>8.0f}{:>8.3f}\n",
                        label, errors.rows, 100 * errors.mean, 100 * errors.median,
                        100 * errors.p90, 100 * errors.bias, 100 * errors.coverage,
                        100 * errors.width, errors.rank_correlation);
  };
  for (const auto& [label, members] : groups) add(label, members);
  add("all", all);
  return text;
}

double median_error(const std::vector<ComparedCase>& cases, std::string_view figure) {
  std::vector<const ComparedCase*> all;
  for (const ComparedCase& compared : cases) all.push_back(&compared);
  return error_summary(scored(all, figure)).median;
}

results::TextTable figure_table(const std::vector<ComparedCase>& cases) {
  results::TextTable table;
  for (const char* name : {"source", "id", "engine", "version", "model", "tp", "ep", "concurrency",
                           "prompt", "output", "variant", "figure", "measured", "predicted",
                           "error", "low", "high", "kv_blocks", "left_out"}) {
    table.columns.emplace_back(name);
  }
  const auto append = [&table](const ComparedCase& compared, const Figure* figure) {
    const ServedCase& served = *compared.served;
    const engine::Scenario& scenario =
        compared.scenario != nullptr ? *compared.scenario : served.scenario;
    const bool closed = scenario.load.arrivals == engine::ArrivalKind::closed;
    const auto number = [](double value) { return fmt::format("{:.9g}", value); };
    const auto count = [](std::int64_t value) { return std::to_string(value); };
    const std::string none;
    const bool bounded = figure != nullptr && figure->high > 0;
    const std::array<std::string, 19> cells = {
        served.source,
        served.id,
        served.engine,
        served.version,
        scenario.model.name,
        count(scenario.parallel.tp),
        count(scenario.parallel.ep),
        closed ? count(scenario.load.clients) : none,
        closed ? count(scenario.load.lengths.prompt) : none,
        closed ? count(scenario.load.lengths.output) : none,
        compared.variant,
        figure != nullptr ? figure->name : none,
        figure != nullptr ? number(figure->measured) : none,
        figure != nullptr ? number(figure->predicted) : none,
        figure != nullptr ? number(figure->predicted / figure->measured - 1) : none,
        bounded ? number(figure->low) : none,
        bounded ? number(figure->high) : none,
        figure != nullptr ? number(compared.kv_blocks) : none,
        compared.failure.empty() ? served.left_out : compared.failure};
    for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].append(cells[i]);
  };
  for (const ComparedCase& compared : cases) {
    for (const Figure& figure : compared.figures) append(compared, &figure);
    if (compared.figures.empty()) append(compared, nullptr);
  }
  return table;
}

}  // namespace tools
