#include "tools/report/figure_words.h"

#include <algorithm>
#include <array>

#include "results/schema.h"

namespace tools {
namespace {

// In the order of engine::FigureGroup.
constexpr std::array<std::string_view, 11> kGroups = {
    "time",     "rates",       "memory", "price",     "serving",         "training",
    "drafting", "other model", "images", "retrieval", "multiplier array"};
static_assert(std::size_t(engine::FigureGroup::array) + 1 == kGroups.size());

// Nobody reads a figure off fewer letters: "1: devices of a node are joined by ..." has no head.
constexpr std::size_t kShortest = 3;

// A longer label does not fit beside a chart.
constexpr std::size_t kLong = 44;

// Without "task serve with load.turns: ", which says when the figure is there.
std::string_view without_condition(std::string_view text) {
  const bool conditional =
      text.starts_with("task ") || text.starts_with("tasks ") || text.starts_with("with ");
  const std::size_t end = text.find(": ");
  return conditional && end != std::string_view::npos ? text.substr(end + 2) : text;
}

std::string without_brackets(std::string_view text) {
  std::string plain;
  std::size_t depth = 0;
  for (const char c : text) {
    if (c == '(') {
      if (depth++ == 0 && plain.ends_with(' ')) plain.pop_back();
    } else if (c == ')' && depth > 0) {
      --depth;
    } else if (depth == 0) {
      plain += c;
    }
  }
  return plain;
}

// "p99", "mean" and "over their peak" are part of what a figure is; other clauses explain it.
bool is_needed(std::string_view clause) {
  const bool percentile = clause.size() == 3 && clause.starts_with('p');
  return percentile || clause == "mean" || clause.starts_with("over ");
}

std::string without_explanations(const std::string& head) {
  const std::size_t first = head.find(", ");
  std::string label = head.substr(0, first);
  // "context, graphs and buffers" is a list.
  if (std::ranges::count(label, ' ') < 2) return head;
  for (std::size_t at = first; at != std::string::npos;) {
    const std::size_t begin = at + 2;
    at = head.find(", ", begin);
    const std::string clause = head.substr(begin, at - begin);
    if (is_needed(clause)) label += ", " + clause;
  }
  return label;
}

}  // namespace

std::string figure_label(std::string_view column, std::string_view description,
                         LabelLength length) {
  std::string head = without_brackets(without_condition(description));
  for (const char* const end : {"; ", ": ", ". ", ", whose", ", which"}) {
    head = head.substr(0, head.find(end));
  }
  if (head.size() < kShortest) return std::string(column);
  return length == LabelLength::brief && head.size() > kLong ? without_explanations(head) : head;
}

std::string_view figure_group(std::string_view column) {
  const auto& table = results::metric_table();
  const auto found = std::ranges::find(table, column, &results::Metric::column);
  return found == table.end() ? "other" : kGroups[std::size_t(found->group)];
}

}  // namespace tools
