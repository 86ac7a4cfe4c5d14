#include "tools/compare/comparison.h"

#include <algorithm>
#include <utility>

namespace tools {
namespace {

constexpr const char* kComparedTexts[] = {"status", "reason_class", "tier", "extrapolated"};
constexpr const char* kTipped[] = {"bound", "saturation"};

std::vector<TextDrift> changed_texts(const RunPair& pair, auto& columns) {
  std::vector<TextDrift> drifts;
  for (const char* column : columns) {
    if (pair.old_run.find(column) == nullptr || pair.new_run.find(column) == nullptr) continue;
    TextDrift drift = text_drift(pair, column);
    if (drift.changed > 0) drifts.push_back(std::move(drift));
  }
  return drifts;
}

void find_status_changes(const RunPair& pair, Comparison& comparison) {
  const Coded olds = pair.old_run.texts("status");
  const Coded news = pair.new_run.texts("status");
  for (std::uint32_t i = 0; i < pair.pairs.size(); ++i) {
    const bool was_ok = olds[pair.pairs[i].old_row] == "ok";
    const bool is_ok = news[pair.pairs[i].new_row] == "ok";
    if (was_ok && !is_ok) comparison.newly_infeasible.push_back(i);
    if (!was_ok && is_ok) comparison.newly_feasible.push_back(i);
  }
}

}  // namespace

engine::Result<Comparison> compare_runs(const RunPair& pair, const CompareOptions& options) {
  auto tolerances = parse_tolerances(options.tolerances, pair);
  if (!tolerances) return tolerances.mistakes();
  tolerances->only_common = options.only_common;
  Comparison comparison{.only_common = options.only_common};
  auto front =
      front_move(pair, options.objectives.empty() ? usual_objectives(pair) : options.objectives);
  if (!front) return front.mistakes();
  comparison.front = std::move(front).value();
  find_status_changes(pair, comparison);
  const std::vector<std::uint8_t> ok = both_ok(pair);
  std::vector<std::uint8_t> drifted(pair.pairs.size());
  comparison.figures = figure_drifts(pair, ok, *tolerances, options.keep, drifted);
  comparison.drifted = std::size_t(std::ranges::count(drifted, 1));
  if (!options.only_common) comparison.results = changed_texts(pair, kComparedTexts);
  comparison.tipped = changed_texts(pair, kTipped);
  comparison.settings = setting_drifts(pair);
  comparison.time = attribution(pair, ok, *tolerances);
  return comparison;
}

bool is_same(const RunPair& pair, const Comparison& comparison) {
  const bool same_points = pair.only_old.empty() && pair.only_new.empty();
  return (same_points || comparison.only_common) && comparison.drifted == 0 &&
         comparison.results.empty();
}

}  // namespace tools
