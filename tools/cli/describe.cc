// llmsweep describe: every field of a spec and every column of the tables.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/leaves/leaf_use.h"
#include "engine/leaves/leaves.h"
#include "results/detail_table.h"
#include "results/schema.h"
#include "sweep/language/read_value.h"
#include "sweep/language/suggest.h"
#include "tools/cli/cli.h"
#include "tools/terminal/terminal.h"

namespace tools {
namespace {

// Without the word that stands for zero.
std::string value_kind_text(const engine::Leaf& leaf) {
  switch (leaf.kind) {
    case engine::LeafKind::quantity:
      return std::string(leaf.unit.symbol);
    case engine::LeafKind::number:
      return "number";
    case engine::LeafKind::integer:
      return "integer";
    case engine::LeafKind::boolean:
      return "true | false";
    case engine::LeafKind::enumeration: {
      std::string names;
      for (const std::string_view name : leaf.names) {
        names += (names.empty() ? "" : " | ") + std::string(name);
      }
      return names;
    }
    case engine::LeafKind::text:
      if (leaf.range.phrases != nullptr) return "list of texts";
      return leaf.range.list ? "number or list of numbers" : "text";
  }
  return "";
}

std::string kind_text(const engine::Leaf& leaf) {
  const std::string kind = value_kind_text(leaf);
  return leaf.range.word == nullptr ? kind : kind + " | " + leaf.range.word;
}

// What raising a field does, where it says so.
std::string_view direction_text(engine::Raising raising) {
  switch (raising) {
    case engine::Raising::never_slower:
      return " (more is never slower)";
    case engine::Raising::never_faster:
      return " (more is never faster)";
    case engine::Raising::either:
    case engine::Raising::unstated:
      break;
  }
  return "";
}

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text) result += char(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool matches(std::string_view text, const std::string& filter) {
  return lower(text).find(lower(filter)) != std::string::npos;
}

// " (counts only where task is serve)", or nothing for a field that always counts.
std::string where_it_counts(int leaf) {
  std::string text;
  for (const engine::LeafUse& use : engine::uses_of(leaf)) {
    text += (text.empty() ? " (counts only where " : "; ") + use.where();
  }
  return text.empty() ? "" : text + ")";
}

// A role has every field of the main deployment: listed only where one asks for the role.
bool repeats_main(const engine::Leaf& leaf, const std::string& filter) {
  return leaf.of_main >= 0 &&
         matches(engine::leaf_table().leaves[std::size_t(leaf.of_main)].path, filter);
}

// The word that a spec may write for a number says more than the number.
std::string default_text(const engine::Leaf& leaf, const engine::LeafValue& value) {
  const bool has_word =
      leaf.range.word != nullptr && engine::condition_value(value) == leaf.range.word_value;
  return has_word ? leaf.range.word : sweep::value_text(leaf, value);
}

// What is said of a field or column.
enum class Detail : std::uint8_t { names, meanings };

// Both print what matches with a heading, or nothing, and return how many they printed.
int describe_fields(const std::string& filter, Detail detail) {
  const engine::Scenario defaults;
  int found = 0;
  for (int number = 0; number < int(engine::leaf_table().leaves.size()); ++number) {
    const engine::Leaf& leaf = engine::leaf_at(number);
    if (!matches(leaf.path, filter) || repeats_main(leaf, filter)) continue;
    if (found++ == 0) {
      print("Fields of a scenario: under 'base', as axes, and in expressions.\n\n");
      print("{:<36} {:<34} {:<14} {}\n", "field", "unit or values", "default",
            detail == Detail::meanings ? "meaning" : "");
    }
    if (detail == Detail::names) {
      print("{:<36} {:<34} {}\n", leaf.path, kind_text(leaf),
            default_text(leaf, engine::get_leaf(defaults, leaf)));
      continue;
    }
    print("{:<36} {:<34} {:<14} {}{}{}\n", leaf.path, kind_text(leaf),
          default_text(leaf, engine::get_leaf(defaults, leaf)), leaf.meaning,
          direction_text(leaf.range.raising), where_it_counts(number));
  }
  return found;
}

struct DescribedTable {
  std::string_view name;
  std::vector<results::Column> columns;
};

int describe_columns(const DescribedTable& table, const std::string& filter, Detail detail) {
  int found = 0;
  for (const results::Column& column : table.columns) {
    if (!matches(column.name, filter)) continue;
    if (found++ == 0) {
      print("\nColumns of {}/*.parquet\n\n{:<36} {:<8} {:<10} {:<8} {}\n", table.name, "column",
            "type", "unit", "is a", detail == Detail::meanings ? "meaning" : "");
    }
    print("{:<36} {:<8} {:<10} {:<8} {}\n", column.name, engine::name_of(column.type), column.unit,
          engine::name_of(column.role), detail == Detail::meanings ? column.description : "");
  }
  return found;
}

// A schema with every leaf: what a sweep of all tasks would write.
results::SchemaInputs everything() {
  results::SchemaInputs inputs;
  inputs.varied_leaves.push_back(engine::leaf_table().find_leaf("task"));
  return inputs;
}

std::vector<DescribedTable> tables() {
  std::vector<DescribedTable> tables{{"points", results::point_columns(everything())}};
  results::each_detail([&](results::Table table, const auto& entry) {
    tables.push_back({entry.name, results::detail_columns(table)});
  });
  return tables;
}

// Nothing is called so: what is called alike, or what mentions it.
int nothing_described(const std::string& filter) {
  std::vector<std::string> names;
  std::vector<std::string> mentions;
  const auto add = [&](const std::string& name, std::string_view meaning) {
    names.push_back(name);
    const bool known = std::ranges::find(mentions, name) != mentions.end();
    if (matches(meaning, filter) && !known) mentions.push_back(name);
  };
  for (const engine::Leaf& leaf : engine::leaf_table().leaves) {
    add(leaf.path, leaf.meaning);
    // One looks for 'batch', not for 'step.batch'.
    names.push_back(leaf.path.substr(leaf.path.rfind('.') + 1));
  }
  for (const DescribedTable& table : tables()) {
    for (const results::Column& column : table.columns) add(column.name, column.description);
  }
  const std::vector<std::string> near = sweep::likely(filter, names);
  std::string hint = "'llmsweep describe' alone lists them all";
  if (!near.empty()) {
    hint = sweep::did_you_mean(near);
  } else if (!mentions.empty()) {
    hint = "described with that word: " + sweep::listing(mentions);
  }
  print(stderr, "error: no field and no column has '{}' in its name\n  hint: {}\n", filter, hint);
  return kMistake;
}

int describe(const std::string& filter, Detail detail) {
  int found = describe_fields(filter, detail);
  for (const DescribedTable& table : tables()) found += describe_columns(table, filter, detail);
  return found > 0 ? int(kOk) : nothing_described(filter);
}

}  // namespace

void add_describe(CLI::App& app, int& exit_code) {
  auto filter = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("describe", "Describe every field and column");
  verb->footer("  llmsweep describe bandwidth      those whose name contains 'bandwidth'");
  verb->add_option("filter", *filter, "part of a name");
  auto detail = std::make_shared<Detail>(Detail::meanings);
  verb->add_flag_callback(
      "--short", [detail] { *detail = Detail::names; },
      "names, units and defaults, without what they mean");
  verb->callback([filter, detail, &exit_code] { exit_code = describe(*filter, *detail); });
}

}  // namespace tools
