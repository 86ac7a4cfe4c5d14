#include "tools/query/row_notes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "engine/leaves/leaves.h"
#include "results/batch_sink.h"
#include "results/schema.h"
#include "tests/support/toy_rows.h"

namespace tools {
namespace {

// What stands between quotes.
std::vector<std::string> quoted(std::string_view text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string_view::npos;) {
    const std::size_t end = text.find('\'', at + 1);
    if (end == std::string_view::npos) break;
    all.emplace_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return all;
}

// Names outside of quotes, but for the words of the language.
std::vector<std::string> columns_in(std::string_view where) {
  std::vector<std::string> names;
  bool inside = false;
  std::string word;
  for (const char c : std::string(where) + " ") {
    if (c == '\'') inside = !inside;
    const bool part = !inside && (std::isalnum(c) != 0 || c == '_' || c == '.');
    if (part) word += c;
    if (part || word.empty()) continue;
    const bool is_name = std::isalpha(word[0]) != 0 && word != "and" && word != "or" &&
                         word != "not" && word != "true" && word != "false";
    if (is_name) names.push_back(word);
    word.clear();
  }
  return names;
}

std::set<std::string> columns_of_all_tasks() {
  const results::SchemaInputs inputs{.varied_leaves = {engine::leaf_table().find_leaf("task")}};
  std::set<std::string> names;
  for (const results::Column& column : results::point_columns(inputs)) names.insert(column.name);
  return names;
}

TEST(RowNotes, EachAsksForColumnsThatThereAre) {
  const std::set<std::string> columns = columns_of_all_tasks();
  for (const RowNote& note : row_notes()) {
    const std::vector<std::string> asked = columns_in(note.where);
    EXPECT_FALSE(asked.empty()) << note.where;
    for (const std::string& name : asked) EXPECT_TRUE(columns.contains(name)) << note.where;
  }
}

TEST(RowNotes, EachNamesAFieldOrACommandThatThereIs) {
  const engine::LeafTable& table = engine::leaf_table();
  for (const RowNote& note : row_notes()) {
    const std::vector<std::string> named = quoted(note.remedy);
    EXPECT_FALSE(named.empty()) << note.remedy;
    for (const std::string& text : named) {
      const std::string field = text.substr(0, text.find(':'));
      EXPECT_TRUE(text.starts_with("llmsweep ") || table.find_leaf(field) >= 0 ||
                  table.find_section(field) >= 0)
          << note.remedy;
    }
  }
}

std::vector<std::string> notes_on(const tests::ToySweep& toy) {
  results::BatchSink sink(toy.schema(), results::BatchTables::points);
  run_toy(toy, sink, sweep::IndexSet({0, toy.positions}));
  NoteCounts counts;
  counts.add(RunRows::of(results::ParquetReader("toys", std::string(sink.file().bytes))));
  return counts.texts(NoteEnd::remedy);
}

// The third kernel of a toy lies outside what was measured. Of three it takes more than a quarter of the time, of twenty about a
// twentieth. Of 100 positions 10 are rejected, and 14 of the others do not work.
TEST(RowNotes, CountPointsThatRestOnKernelsThatWereNotMeasured) {
  const auto says = [](const std::vector<std::string>& notes, const char* text) {
    return std::ranges::any_of(
        notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(
      says(notes_on({.positions = 100, .kernels = 3}),
           "76 of 76 points spend more than a quarter of their time on kernels outside what "
           "was measured (extrapolated_share)"));
  EXPECT_FALSE(says(notes_on({.positions = 100, .kernels = 20}), "extrapolated_share"));
}

}  // namespace
}  // namespace tools
