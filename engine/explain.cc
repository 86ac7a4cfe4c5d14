#include "engine/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>
#include <vector>

#include "engine/base/units.h"
#include "engine/neighbours.h"
#include "engine/tasks/task_table.h"

namespace engine {
namespace {

struct Prefix {
  double factor;
  std::string_view text;
};

// Long times as people say them: "2.5 h", not "9 ks".
std::string long_time(double seconds) {
  constexpr std::array<Prefix, 3> units{{{86400, "d"}, {3600, "h"}, {60, "min"}}};
  const Prefix* chosen = &units.back();
  for (const Prefix& unit : units) {
    if (seconds >= 2 * unit.factor) {
      chosen = &unit;
      break;
    }
  }
  return fmt::format("{:.3g} {}", seconds / chosen->factor, chosen->text);
}

// Three significant digits with a prefix: "1.77 ms", "141 GB".
std::string scaled(double value, std::string_view unit) {
  constexpr std::array<Prefix, 9> prefixes{{{1e15, "P"},
                                            {1e12, "T"},
                                            {1e9, "G"},
                                            {1e6, "M"},
                                            {1e3, "k"},
                                            {1, ""},
                                            {1e-3, "m"},
                                            {1e-6, "u"},
                                            {1e-9, "n"}}};
  if (std::isnan(value)) return "-";
  if (value == 0) return fmt::format("0 {}", unit);
  if (unit == "s" && value >= 1000) return long_time(value);
  // A thousandth of a token per second would look like a million of them.
  if (std::abs(value) < 1 && unit.ends_with("/s")) return fmt::format("{:.3g} {}", value, unit);
  const Prefix* chosen = &prefixes.back();
  for (const Prefix& prefix : prefixes) {
    if (std::abs(value) >= prefix.factor * 0.9995) {
      chosen = &prefix;
      break;
    }
  }
  return fmt::format("{:.3g} {}{}", value / chosen->factor, chosen->text, unit);
}

std::string headline(const Scenario& scenario) {
  const Parallelism& parallel = scenario.parallel;
  std::string text =
      fmt::format("{} on {} x {}", scenario.model.name, parallel.devices(), scenario.device.name);
  if (parallel.devices() > 1) {
    text += fmt::format(" (tp {}, pp {}, dp {}, ep {}", parallel.tp, parallel.pp, parallel.dp,
                        parallel.ep);
    text += parallel.cp > 1 ? fmt::format(", cp {})", parallel.cp) : ")";
  }
  text += fmt::format(", weights {}, activations {}, kv {}\n", name_of(scenario.quant.weights),
                      name_of(scenario.quant.activations), name_of(scenario.quant.kv));
  if (has_neighbour(scenario)) {
    text += fmt::format("beside {} on the same devices, sharing.mode {}\n",
                        scenario.neighbour.deployment.model.name, name_of(scenario.sharing.mode));
  }
  return text + task_entry(scenario.task).headline(scenario);
}

// The latencies of a served load: rows of a table of mean and percentiles.
struct LatencyRow {
  std::string_view name;
  std::array<Seconds Metrics::*, 5> figures;
};
constexpr LatencyRow kLatencies[] = {
    {"queue",
     {&Metrics::queue, &Metrics::queue_p50, &Metrics::queue_p90, &Metrics::queue_p95,
      &Metrics::queue_p99}},
    {"ttft",
     {&Metrics::ttft, &Metrics::ttft_p50, &Metrics::ttft_p90, &Metrics::ttft_p95,
      &Metrics::ttft_p99}},
    {"tpot",
     {&Metrics::tpot, &Metrics::tpot_p50, &Metrics::tpot_p90, &Metrics::tpot_p95,
      &Metrics::tpot_p99}},
    {"itl",
     {&Metrics::itl, &Metrics::itl_p50, &Metrics::itl_p90, &Metrics::itl_p95, &Metrics::itl_p99}},
    {"e2e",
     {&Metrics::e2e, &Metrics::e2e_p50, &Metrics::e2e_p90, &Metrics::e2e_p95, &Metrics::e2e_p99}},
};

// Takes what it shows out of the figures.
std::string latencies(Metrics& metrics) {
  std::string text = fmt::format("  {:<10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "", "mean", "p50",
                                 "p90", "p95", "p99");
  for (const LatencyRow& row : kLatencies) {
    text += fmt::format("  {:<10}", row.name);
    for (Seconds Metrics::*figure : row.figures) {
      text += fmt::format(" {:>10}", scaled((metrics.*figure).value, "s"));
      metrics.*figure = Seconds{kNoValue};
    }
    text += '\n';
  }
  return text;
}

// Every figure the point has, one a line.
std::string figures(const Metrics& metrics) {
  std::string text;
  Metrics::fields(metrics, [&text](std::string_view name, const auto& value, std::string_view) {
    using T = std::decay_t<decltype(value)>;
    if constexpr (IsQuantity<T>) {
      if (std::isnan(value.value)) return;
      text += fmt::format("  {:<30} {}\n", name,
                          scaled(value.value * UnitOf<T>::unit.per_base, UnitOf<T>::unit.symbol));
    } else {
      if (std::isnan(value)) return;
      text += fmt::format("  {:<30} {:.6g}\n", name, value);
    }
  });
  return text;
}

std::string breakdown(const std::vector<KernelRow>& kernels) {
  Seconds total;
  for (const KernelRow& row : kernels) total += row.work.exposed();
  std::vector<KernelRow> rows = kernels;
  std::stable_sort(rows.begin(), rows.end(), [](const KernelRow& a, const KernelRow& b) {
    return a.work.exposed() > b.work.exposed();
  });
  std::string text =
      fmt::format("{:<8} {:<18} {:<14} {:>7} {:>10} {:>7} {:>10} {:>12} {:>11}  {:<8} {:<12} {}\n",
                  "phase", "op", "family", "calls", "time", "share", "per call", "arithmetic",
                  "traffic", "bound", "algorithm", "tier");
  for (const KernelRow& row : rows) {
    const bool works = row.bound != Bound::host;
    const Work& work = row.work;
    const Seconds time = work.exposed();
    text += fmt::format(
        "{:<8} {:<18} {:<14} {:>7.0f} {:>10} {:>6.1f}% {:>10} {:>12} {:>11}  {:<8} {:<12} {}\n",
        name_of(row.phase), name_of(row.op), name_of(row.family), work.calls,
        scaled(time.value, "s"), 100 * (time / total), scaled(work.time.value / work.calls, "s"),
        works && work.flops.value > 0 ? scaled(work.flops / work.time / FlopsPerSecond{1}, "FLOP/s")
                                      : "",
        works && work.bytes.value > 0 ? scaled(work.bytes / work.time / BytesPerSecond{1}, "B/s")
                                      : "",
        name_of(row.bound), row.algorithm == Algorithm::none ? "" : name_of(row.algorithm),
        works ? name_of(row.tier) : "");
    if (row.extrapolated) {
      text.back() = ' ';
      text += "(extrapolated)\n";
    }
  }
  text += fmt::format("{:<8} {:<18} {:<14} {:>7} {:>10}\n", "", "sum", "", "",
                      scaled(total.value, "s"));
  return text;
}

}  // namespace

std::string explain(const Scenario& scenario, const Outcome& outcome) {
  std::string text = headline(scenario);
  text += fmt::format("status {}", name_of(outcome.status));
  if (!outcome.reason.empty()) text += ": " + outcome.reason;
  if (outcome.status == Status::ok) {
    text += fmt::format(", bound by {}, tier {}{}", name_of(outcome.bound), name_of(outcome.tier),
                        outcome.extrapolated ? " (partly extrapolated)" : "");
  }
  if (outcome.saturation != Saturation::none) {
    text += fmt::format(", load {}", name_of(outcome.saturation));
  }
  Metrics left = outcome.metrics;
  if (scenario.task == Task::serve && outcome.status == Status::ok) {
    text += "\n\nlatencies\n" + latencies(left);
  } else {
    text += '\n';
  }
  text += "\nfigures\n" + figures(left);
  if (outcome.status == Status::ok && !(scenario.device.rent.value > 0)) {
    text += fmt::format("  no price: {} has no rent (device.rent)\n", scenario.device.name);
  }
  if (!outcome.kernels.empty()) text += "\nbreakdown\n" + breakdown(outcome.kernels);
  return text;
}

}  // namespace engine
