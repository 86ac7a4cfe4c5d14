#include "tools/compare/comparison_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "sweep/language/parse_quantity.h"
#include "tools/query/answer.h"
#include "tools/terminal/number_text.h"

namespace tools {
namespace {

using results::TextColumn;
using results::TextTable;

// Lines of a section; a file for programs has more.
constexpr std::size_t kShown = 15;

struct Section {
  std::string title;
  std::string note;  // may be empty
  TextTable table;
};

std::string number(double value) { return std::isnan(value) ? "" : sweep::format_number(value); }

std::string percent(double share) {
  if (std::isnan(share)) return "";
  if (std::isinf(share)) return "from 0";
  return fmt::format("{:.3g}", 100 * share + 0.0);  // no "-0"
}
// In a sentence, where no column says that it is a change.
std::string moved_by(double share) { return (share > 0 ? "+" : "") + percent(share) + "%"; }

TextTable table_of(std::initializer_list<const char*> columns) {
  TextTable table;
  for (const char* name : columns) table.columns.emplace_back(name);
  return table;
}

void add_row(TextTable& table, const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) table.columns[i].append(cells[i]);
}

// Both runs' points by name.
struct Names {
  PointNames olds, news;
  explicit Names(const RunPair& pair) : olds(pair.old_run), news(pair.new_run) {}
};

class Page {
 public:
  Page(const RunPair& pair, const Comparison& comparison)
      : pair_(pair), comparison_(comparison), names_(pair) {}

  std::vector<Section> sections() const {
    std::vector<Section> all;
    for (auto section : {points(), figures(), results(), settings(), time(), front()}) {
      if (section) all.push_back(std::move(*section));
    }
    return all;
  }

  std::string summary() const {
    std::string text =
        fmt::format("old: {}, {}\nnew: {}, {}\njoined: {}", folder(pair_.old_run),
                    counted(pair_.old_run.rows(), "point"), folder(pair_.new_run),
                    counted(pair_.new_run.rows(), "point"), grouped(pair_.pairs.size()));
    if (pair_.by_labels > 0) {
      text += fmt::format(", {} of them by the labels of their axes", grouped(pair_.by_labels));
    }
    return text + (is_same(pair_, comparison_) ? "\nsame\n" : "\n");
  }

 private:
  static std::string folder(const RunRows& run) { return run.runs().front().folder.string(); }
  std::string new_name(std::uint32_t pair) const {
    return names_.news.name(pair_.pairs[pair].new_row);
  }

  std::optional<Section> points() const {
    TextTable table = table_of({"points", "count", "first"});
    const auto add = [&](const char* what, std::size_t count, const std::string& first) {
      if (count > 0) add_row(table, {what, std::to_string(count), first});
    };
    const Comparison& c = comparison_;
    const auto first_pair = [&](const std::vector<std::uint32_t>& pairs) {
      return pairs.empty() ? "" : new_name(pairs.front());
    };
    add("new", pair_.only_new.size(),
        pair_.only_new.empty() ? "" : names_.news.name(pair_.only_new.front()));
    add("missing", pair_.only_old.size(),
        pair_.only_old.empty() ? "" : names_.olds.name(pair_.only_old.front()));
    add("newly infeasible", c.newly_infeasible.size(), first_pair(c.newly_infeasible));
    add("newly feasible", c.newly_feasible.size(), first_pair(c.newly_feasible));
    add("with a figure that drifted", c.drifted, "");
    if (table.rows() == 0) return std::nullopt;
    return Section{"Points", "", std::move(table)};
  }

  // Figures that drifted most come first.
  std::optional<Section> figures() const {
    std::vector<const FigureDrift*> changed;
    for (const FigureDrift& drift : comparison_.figures) {
      if (drift.changed > 0) changed.push_back(&drift);
    }
    if (changed.empty()) return std::nullopt;
    std::ranges::stable_sort(changed, std::greater{}, [](const FigureDrift* drift) {
      return std::isnan(drift->median) ? 0 : std::abs(drift->median);
    });
    TextTable table = table_of({"figure", "points", "drifted", "median_percent", "worst_percent",
                                "was", "is", "worst_at"});
    for (std::size_t i = 0; i < std::min(kShown, changed.size()); ++i) {
      const FigureDrift& drift = *changed[i];
      const FigureDrift::Point& worst = drift.worst.front();
      add_row(table, {drift.column, std::to_string(drift.compared), std::to_string(drift.changed),
                      percent(drift.median), percent(relative_change(worst.before, worst.after)),
                      number(worst.before), number(worst.after), new_name(worst.pair)});
    }
    const std::size_t same = comparison_.figures.size() - changed.size();
    const std::size_t hidden = changed.size() - table.rows();
    std::string note =
        fmt::format("{} of {} figures drifted", changed.size(), changed.size() + same);
    if (hidden > 0) note += fmt::format("; {} more than shown, -o FILE.csv has all", hidden);
    return Section{"Figures", std::move(note), std::move(table)};
  }

  void add_texts(TextTable& table, const std::vector<TextDrift>& drifts) const {
    for (const TextDrift& drift : drifts) {
      for (const TextDrift::Change& change : drift.changes) {
        if (table.rows() == kShown) return;
        add_row(table, {drift.column, std::to_string(change.points), change.before, change.after,
                        new_name(change.first)});
      }
    }
  }

  std::optional<Section> results() const {
    TextTable table = table_of({"column", "points", "was", "is", "first"});
    add_texts(table, comparison_.results);
    add_texts(table, comparison_.tipped);
    if (table.rows() == 0) return std::nullopt;
    return Section{"Results", "", std::move(table)};
  }

  std::optional<Section> settings() const {
    TextTable table = table_of({"setting", "points", "was", "is", "first"});
    add_texts(table, comparison_.settings);
    if (table.rows() == 0) return std::nullopt;
    return Section{"Settings",
                   "points with the same labels of their axes differ in what the labels stand for",
                   std::move(table)};
  }

  std::optional<Section> time() const {
    const Attribution& account = comparison_.time;
    if (account.points == 0) return std::nullopt;
    TextTable table = table_of({"part", "kind", "mean_percent", "worst_percent", "worst_at"});
    for (std::size_t i = 0; i < std::min(kShown, account.parts.size()); ++i) {
      const TimePart& part = account.parts[i];
      add_row(table, {part.name, std::string(part.kind), percent(part.mean), percent(part.worst),
                      new_name(part.worst_pair)});
    }
    return Section{"Where the time went",
                   fmt::format("{} of {} points drifted, by {} in the mean; the parts add up to it",
                               account.column, grouped(account.points), moved_by(account.mean)),
                   std::move(table)};
  }

  std::optional<Section> front() const {
    const FrontMove& front = comparison_.front;
    if (front.objectives.empty()) return std::nullopt;
    const bool moved = std::abs(front.median) > 0 || std::abs(front.worst) > 0;
    if (front.entered.empty() && front.left.empty() && !moved) return std::nullopt;
    std::string figures;
    for (const Objective& objective : front.objectives) {
      figures += fmt::format("{}{} ({})", figures.empty() ? "" : ", ", objective.column,
                             objective.better == Better::higher ? "high" : "low");
    }
    TextTable table = table_of({"front", "points", "first"});
    add_row(table, {"was on it", std::to_string(front.before), ""});
    add_row(table, {"is on it", std::to_string(front.after), ""});
    add_row(table, {"entered", std::to_string(front.entered.size()),
                    front.entered.empty() ? "" : names_.news.name(front.entered.front())});
    add_row(table, {"left", std::to_string(front.left.size()),
                    front.left.empty() ? "" : names_.olds.name(front.left.front())});
    std::string note = "of " + figures;
    if (!std::isnan(front.median)) {
      note += fmt::format(
          "; its points moved by {} in the median, by {} at worst, at {} (+: better)",
          moved_by(front.median), moved_by(front.worst), names_.olds.name(front.worst_row));
    }
    return Section{"Pareto front", std::move(note), std::move(table)};
  }

  const RunPair& pair_;
  const Comparison& comparison_;
  Names names_;
};

std::string escaped_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string html_table(const TextTable& table) {
  std::string html = "<table><tr>";
  for (const TextColumn& column : table.columns) {
    html += "<th>" + escaped_html(column.name()) + "</th>";
  }
  html += "</tr>\n";
  for (std::size_t row = 0; row < table.rows(); ++row) {
    html += "<tr>";
    for (const TextColumn& column : table.columns) {
      html += "<td>" + escaped_html(column[row]) + "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string html_page(const std::string& summary, const std::vector<Section>& sections) {
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Comparison</title>\n"
      "<style>body{font:15px sans-serif;margin:2em}table{border-collapse:collapse}"
      "td,th{padding:.2em .7em;text-align:left;border-bottom:1px solid #8886}"
      ":root{color-scheme:light dark}</style>\n";
  html += "<pre>" + escaped_html(summary) + "</pre>\n";
  for (const Section& section : sections) {
    html += "<h2>" + escaped_html(section.title) + "</h2>\n";
    if (!section.note.empty()) html += "<p>" + escaped_html(section.note) + "</p>\n";
    html += html_table(section.table);
  }
  return html + "</html>\n";
}

std::string markdown_page(const std::string& summary, const std::vector<Section>& sections) {
  std::string text = "```\n" + summary + "```\n";
  for (const Section& section : sections) {
    text += "\n### " + section.title + "\n\n";
    if (!section.note.empty()) text += section.note + "\n\n";
    text += to_text(section.table, AnswerFormat::markdown);
  }
  return text;
}

std::string text_page(const std::string& summary, const std::vector<Section>& sections) {
  std::string text = summary;
  for (const Section& section : sections) {
    text += "\n" + section.title + (section.note.empty() ? "" : ": " + section.note) + "\n";
    text += to_text(section.table, AnswerFormat::text);
  }
  return text;
}

}  // namespace

std::string comparison_page(const RunPair& pair, const Comparison& comparison, PageFormat format) {
  const Page page(pair, comparison);
  std::string summary;
  for (const std::string& note : pair.notes) summary += note + "\n";
  summary += page.summary();
  const std::vector<Section> sections = page.sections();
  switch (format) {
    case PageFormat::text:
      return text_page(summary, sections);
    case PageFormat::markdown:
      return markdown_page(summary, sections);
    case PageFormat::html:
      return html_page(summary, sections);
  }
  return "";
}

TextTable differences(const RunPair& pair, const Comparison& comparison) {
  TextTable table = table_of(
      {"change", "old_index", "new_index", "point", "column", "was", "is", "change_percent"});
  const Names names(pair);
  const auto index = [](const PointNames& run, std::uint32_t row) {
    return sweep::format_number(run.index(row));
  };
  const auto add = [&](const char* change, std::uint32_t i, const std::string& column,
                       std::string was, std::string is, const std::string& share) {
    const RowPair& rows = pair.pairs[i];
    add_row(table, {change, index(names.olds, rows.old_row), index(names.news, rows.new_row),
                    names.news.name(rows.new_row), column, std::move(was), std::move(is), share});
  };
  for (const std::uint32_t row : pair.only_new) {
    add_row(table, {"new", "", index(names.news, row), names.news.name(row), "", "", "", ""});
  }
  for (const std::uint32_t row : pair.only_old) {
    add_row(table, {"missing", index(names.olds, row), "", names.olds.name(row), "", "", "", ""});
  }
  const Coded olds = pair.old_run.texts("status");
  const Coded news = pair.new_run.texts("status");
  for (const auto* changed : {&comparison.newly_infeasible, &comparison.newly_feasible}) {
    for (const std::uint32_t i : *changed) {
      add("status", i, "status", std::string(olds[pair.pairs[i].old_row]),
          std::string(news[pair.pairs[i].new_row]), "");
    }
  }
  for (const FigureDrift& drift : comparison.figures) {
    for (const FigureDrift::Point& point : drift.worst) {
      const double share = relative_change(point.before, point.after);
      add("figure", point.pair, drift.column, number(point.before), number(point.after),
          std::isfinite(share) ? sweep::format_number(100 * share) : "");
    }
  }
  return table;
}

}  // namespace tools
