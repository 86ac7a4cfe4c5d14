#include "tools/compare/front_move.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "tools/query/ranking.h"

namespace tools {
namespace {

// Pairs of figures that pull in opposite directions, the most telling first.
constexpr const char* kUsual[][2] = {
    {"output_per_device_tokens_per_s", "output_per_user_tokens_per_s"},
    {"price_usd_per_mtok", "step_time_s"},
    {"per_device_tokens_per_s", "step_time_s"},
    {"price_usd_per_mtok", "e2e_s"},
    {"tokens_per_s_per_device", "peak_memory_bytes"},
    {"images_per_s", "image_latency_s"},
};

struct Front {
  Candidates found;
  std::vector<std::uint32_t> rows;
};

engine::Result<Front> front_of(const RunRows& run, const Question& question) {
  auto found = candidates(run, question);
  if (!found) return found.mistakes();
  Front front{.found = std::move(found).value()};
  front.rows = front_rows(front.found, question);
  return front;
}

// Shares by which the figures of `row` may get worse, all alike, before `other` stops beating them: the
// least over the figures. Logarithms, so that a factor counts the same both ways.
double margin(const Front& front, std::uint32_t row, const Front& other_front, std::uint32_t other,
              const Question& question) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < question.objectives.size(); ++i) {
    const double ratio = other_front.found.values[i][other] / front.found.values[i][row];
    const double better =
        question.objectives[i].better == Better::higher ? std::log(ratio) : -std::log(ratio);
    least = std::min(least, better);
  }
  return least;
}

void measure(const Front& olds, const Front& news, const Question& question, FrontMove& move) {
  std::vector<double> shifts;
  move.worst = std::numeric_limits<double>::infinity();
  for (const std::uint32_t row : olds.rows) {
    double best = -std::numeric_limits<double>::infinity();
    for (const std::uint32_t other : news.rows) {
      best = std::max(best, margin(olds, row, news, other, question));
    }
    const double shift = std::expm1(best);
    if (!std::isfinite(shift)) continue;  // figures that are not positive
    shifts.push_back(shift);
    if (shift < move.worst) {
      move.worst = shift;
      move.worst_row = row;
    }
  }
  const auto middle = shifts.begin() + std::ptrdiff_t(shifts.size() / 2);
  std::ranges::nth_element(shifts, middle);
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  move.median = shifts.empty() ? kUnknown : *middle;
  if (shifts.empty()) move.worst = kUnknown;
}

}  // namespace

std::vector<Objective> usual_objectives(const RunPair& pair) {
  const auto has = [&pair](const char* name) {
    return std::ranges::all_of(std::vector{&pair.old_run, &pair.new_run}, [name](const auto* run) {
      if (run->find(name) == nullptr) return false;
      const std::vector<double> values = run->numbers(name);
      return std::ranges::any_of(values, [](double value) { return std::isfinite(value); });
    });
  };
  for (const auto& [first, second] : kUsual) {
    if (has(first) && has(second)) {
      return {{first, better_of(first)}, {second, better_of(second)}};
    }
  }
  return {};
}

engine::Result<FrontMove> front_move(const RunPair& pair, std::vector<Objective> objectives) {
  FrontMove move{.objectives = std::move(objectives)};
  if (move.objectives.empty()) return move;
  const Question question{.objectives = move.objectives};
  const auto olds = front_of(pair.old_run, question);
  if (!olds) return olds.mistakes();
  const auto news = front_of(pair.new_run, question);
  if (!news) return news.mistakes();
  move.before = olds->rows.size();
  move.after = news->rows.size();

  std::vector<std::uint8_t> was_on_front(pair.old_run.rows()), is_on_front(pair.new_run.rows());
  for (const std::uint32_t row : olds->rows) was_on_front[row] = 1;
  for (const std::uint32_t row : news->rows) is_on_front[row] = 1;
  std::vector<std::uint8_t> stayed_old(pair.old_run.rows()), stayed_new(pair.new_run.rows());
  for (const RowPair& rows : pair.pairs) {
    const bool stayed = was_on_front[rows.old_row] != 0 && is_on_front[rows.new_row] != 0;
    stayed_old[rows.old_row] = stayed_new[rows.new_row] = std::uint8_t(stayed);
  }
  std::ranges::copy_if(news->rows, std::back_inserter(move.entered),
                       [&](std::uint32_t row) { return stayed_new[row] == 0; });
  std::ranges::copy_if(olds->rows, std::back_inserter(move.left),
                       [&](std::uint32_t row) { return stayed_old[row] == 0; });
  measure(*olds, *news, question, move);
  return move;
}

}  // namespace tools
