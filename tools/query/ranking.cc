#include "tools/query/ranking.h"

#include <algorithm>
#include <map>

namespace tools {
namespace {

// A figure with its sign turned where high is better: from here on less is better.
class Figures {
 public:
  Figures(const Candidates& candidates, const Question& question)
      : candidates_(candidates), objectives_(question.objectives) {}

  double at(std::size_t objective, std::uint32_t row) const {
    const double value = candidates_.values[objective][row];
    return objectives_[objective].better == Better::higher ? -value : value;
  }
  // Lexicographic; the table's own order settles what is equal.
  bool before(std::uint32_t a, std::uint32_t b) const {
    for (std::size_t i = 0; i < objectives_.size(); ++i) {
      if (at(i, a) != at(i, b)) return at(i, a) < at(i, b);
    }
    return a < b;
  }
  bool beats(std::uint32_t a, std::uint32_t b) const {
    bool better = false;
    for (std::size_t i = 0; i < objectives_.size(); ++i) {
      if (at(i, a) > at(i, b)) return false;
      better = better || at(i, a) < at(i, b);
    }
    return better;
  }
  std::size_t count() const { return objectives_.size(); }

 private:
  const Candidates& candidates_;
  const std::vector<Objective>& objectives_;
};

std::vector<std::uint32_t> in_order(const Candidates& candidates, const Figures& figures) {
  std::vector<std::uint32_t> rows = candidates.rows;
  std::ranges::sort(rows, [&figures](auto a, auto b) { return figures.before(a, b); });
  return rows;
}

// Rows of one group come best first, so a row can only be beaten by one that came before it. With two
// objectives the last row of the front is the one that beats most; with more all must be asked.
bool is_beaten(const std::vector<std::uint32_t>& front, std::uint32_t row, const Figures& figures) {
  if (front.empty()) return false;
  if (figures.count() <= 2) return figures.beats(front.back(), row);
  return std::ranges::any_of(front, [&](std::uint32_t other) { return figures.beats(other, row); });
}

}  // namespace

std::vector<std::uint32_t> best_rows(const Candidates& candidates, const Question& question,
                                     std::size_t count) {
  std::vector<std::uint32_t> best;
  std::map<std::uint32_t, std::size_t> taken;
  for (const std::uint32_t row : in_order(candidates, Figures(candidates, question))) {
    if (taken[candidates.group_of(row)]++ < count) best.push_back(row);
  }
  return best;
}

std::vector<std::uint32_t> front_rows(const Candidates& candidates, const Question& question) {
  const Figures figures(candidates, question);
  std::map<std::uint32_t, std::vector<std::uint32_t>> fronts;
  std::vector<std::uint32_t> all;
  for (const std::uint32_t row : in_order(candidates, figures)) {
    auto& front = fronts[candidates.group_of(row)];
    if (is_beaten(front, row, figures)) continue;
    front.push_back(row);
    all.push_back(row);
  }
  return all;
}

}  // namespace tools
