#include "tools/query/question.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tools/query/where.h"

namespace tools {
namespace {

constexpr std::array<std::string_view, 21> kHighIsBetter = {"_per_s",
                                                            "utilization",
                                                            "attainment",
                                                            "slo_met",
                                                            "probability",
                                                            "max_batch",
                                                            "kv_capacity_tokens",
                                                            "free_bytes",
                                                            "hit_rate",
                                                            "steady",
                                                            "precision_met",
                                                            "goodput",
                                                            "availability",
                                                            "fairness",
                                                            "kv_blocks",
                                                            "hidden_time",
                                                            "requests_finished",
                                                            "later_turns_seen",
                                                            "load_seen",
                                                            "capacity_",
                                                            "neighbour_kv_tokens"};
// Load that arrives is not speed, and neither is what a step has to do.
constexpr std::array<std::string_view, 3> kLowAllTheSame = {"offered", "adapters_per_step",
                                                            "proposed_tokens"};

bool contains_any(std::string_view name, const auto& words) {
  return std::ranges::any_of(
      words, [name](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

void check_objectives(const RunRows& rows, const Question& question,
                      std::vector<engine::Mistake>& mistakes) {
  for (const Objective& objective : question.objectives) {
    const results::Column* column = rows.find(objective.column);
    if (column == nullptr) {
      mistakes.push_back(unknown_column(rows, objective.column, {.file = rows.runs()[0].folder}));
    } else if (!is_number(*column)) {
      mistakes.push_back({{.file = rows.runs()[0].folder},
                          "column '" + objective.column + "' holds texts, not numbers",
                          "group by it, or compare it in --where"});
    }
  }
}

}  // namespace

Better better_of(std::string_view metric) {
  return contains_any(metric, kHighIsBetter) && !contains_any(metric, kLowAllTheSame)
             ? Better::higher
             : Better::lower;
}

engine::Result<Candidates> candidates(const RunRows& rows, const Question& question) {
  std::vector<engine::Mistake> mistakes;
  check_objectives(rows, question, mistakes);
  const results::Column* group =
      question.group_by.empty() ? nullptr : rows.find_axis(question.group_by);
  if (!question.group_by.empty() && group == nullptr) {
    mistakes.push_back(unknown_column(rows, question.group_by, {.file = rows.runs()[0].folder}));
  }
  Matches matches{.holds = std::vector<std::uint8_t>(rows.rows(), 1)};
  if (!question.where.empty()) {
    auto asked = rows_where(rows, question.where);
    if (asked) {
      matches = std::move(asked).value();
    } else {
      mistakes.insert(mistakes.end(), asked.mistakes().begin(), asked.mistakes().end());
    }
  }
  if (!mistakes.empty()) return mistakes;

  Candidates found{.all = rows.rows(), .notes = std::move(matches.notes)};
  for (const Objective& objective : question.objectives) {
    found.values.push_back(rows.numbers(objective.column));
  }
  if (group != nullptr) {
    found.group_column = group->name;
    found.group = rows.texts(group->name);
  }
  const Coded status = rows.texts("status");
  for (std::uint32_t row = 0; row < rows.rows(); ++row) {
    if (status[row] != "ok") continue;
    ++found.ok;
    const bool has_all = std::ranges::all_of(
        found.values, [row](const auto& column) { return std::isfinite(column[row]); });
    if (matches.holds[row] != 0 && has_all) found.rows.push_back(row);
  }
  return found;
}

}  // namespace tools
