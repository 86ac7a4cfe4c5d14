#include "tools/query/question.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tools/query/where.h"
#include "tools/terminal/number_text.h"

namespace tools {
namespace {

constexpr std::array<std::string_view, 20> kHighIsBetter = {"_per_s",
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

// What makes rows hard to rank: a machine that is full whatever its users wait looks cheap, one that answers only short requests
// and a lower bound look fast.
void note_what_misleads(const RunRows& rows, Candidates& found) {
  const auto count = [&](const char* column, std::string_view value) {
    if (rows.find(column) == nullptr) return std::size_t(0);
    const Coded texts = rows.texts(column);
    return std::size_t(
        std::ranges::count_if(found.rows, [&](std::uint32_t row) { return texts[row] == value; }));
  };
  const std::size_t overloaded = count("saturation", "overloaded");
  if (overloaded > 0) {
    found.notes.push_back(fmt::format(
        "{} of {} finish less than arrives (saturation overloaded): waits depend on how long the "
        "run was, and prices are those of a machine that is always full; --where \"saturation != "
        "'overloaded'\" leaves them out",
        grouped(overloaded), counted(found.rows.size(), "point")));
  }
  const auto note_where = [&](const char* column, auto misleads, std::string_view text) {
    if (rows.find(column) == nullptr) return;
    const auto values = rows.numbers(column);
    const auto points = std::size_t(std::ranges::count_if(
        found.rows, [&](std::uint32_t row) { return misleads(values[row]); }));
    if (points == 0) return;
    found.notes.push_back(
        fmt::format("{} of {} {}", grouped(points), counted(found.rows.size(), "point"), text));
  };
  note_where(
      "requests_refused", [](double refused) { return refused > 0; },
      "refuse requests that are too long for the model or the KV cache: figures are those of the "
      "shorter ones; --where \"requests_refused == 0\" leaves them out");
  note_where(
      "later_turns_seen", [](double seen) { return seen < 0.9; },
      "are over before their sessions are (later_turns_seen below 0.9): figures are mostly those "
      "of first turns, whose prompts are shorter, so that rates look high; --where "
      "\"later_turns_seen >= 0.9\" leaves them out");
  note_where(
      "neighbour_overloaded", [](double starves) { return starves > 0; },
      "have a neighbour that finishes less than arrives (neighbour_overloaded 1), whatever "
      "saturation says of the main model; --where \"neighbour_overloaded == 0\" leaves them out");
  note_where(
      "capacity_decided", [](double decided) { return decided == 0; },
      "have a capacity that their runs were too short to decide (capacity_decided 0): it may be "
      "far too high, and figures are not those of a steady load; 'load.requests: auto' lets a run "
      "be as long as it takes, and --where \"capacity_decided != 0\" leaves them out");
  const std::size_t bounds = count("tier", "roofline");
  if (bounds > 0 && bounds < found.rows.size()) {
    found.notes.push_back(fmt::format(
        "{} of {} rest on physics alone (tier roofline): their times are lower bounds, often half "
        "the real ones, and the others' are not; --where \"tier != 'roofline'\" leaves them out",
        grouped(bounds), counted(found.rows.size(), "point")));
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
  note_what_misleads(rows, found);
  return found;
}

}  // namespace tools
