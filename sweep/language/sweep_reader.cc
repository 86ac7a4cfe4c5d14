#include "sweep/language/sweep_reader.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "sweep/input/utf8.h"
#include "sweep/language/design_tables.h"
#include "sweep/language/load_spec.h"
#include "sweep/language/other_words.h"
#include "sweep/language/read_fields.h"
#include "sweep/language/read_value.h"
#include "sweep/language/suggest.h"
#include "sweep/language/yaml_file.h"
#include "sweep/space/roles.h"

namespace sweep {

using engine::Location;
using engine::Mistake;

namespace {

const std::vector<std::string> kTopKeys{"name",       "description", "include", "base",
                                        "axes",       "require",     "derive",  "seed",
                                        "replicates", "limit",       "expect"};

// As one reads a file: from the top. Files stay in the order of their first mistake.
std::vector<Mistake> in_order(std::vector<Mistake> mistakes) {
  std::vector<std::string> files;
  for (const Mistake& mistake : mistakes) {
    if (std::find(files.begin(), files.end(), mistake.where.file) == files.end()) {
      files.push_back(mistake.where.file);
    }
  }
  const auto rank = [&](const Mistake& mistake) {
    const auto file = std::find(files.begin(), files.end(), mistake.where.file) - files.begin();
    return std::tuple(file, mistake.where.line, mistake.where.column);
  };
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [&](const Mistake& a, const Mistake& b) { return rank(a) < rank(b); });
  return mistakes;
}

}  // namespace

SweepReader::SweepReader(std::string file_name, const Library& library, InertAxes inert)
    : inert_(inert),
      file_name_(std::move(file_name)),
      reading_(library.with(std::filesystem::path(file_name_).parent_path() / "specs")) {}

std::vector<Mistake> SweepReader::mistakes() {
  return std::exchange(reading_.mistakes, {}).finish_sorted(in_order);
}

void SweepReader::gather(engine::Result<Node> root, const std::string& file) {
  reading_.files.push_back(file);
  if (!root) {
    reading_.mistakes.add(root.mistakes());
    return;
  }
  Node document = std::move(root).value();
  reading_.count(document);
  if (root_where_.file.empty()) root_where_ = document.where;
  if (!document.is_map()) {
    const std::string what = document.is_null()
                                 ? "the file is empty"
                                 : "a sweep is a map, not " + std::string(name_of(document.kind));
    reading_.mistake(document.where, what, "start with 'base:' and 'axes:'");
    return;
  }
  const std::string key = std::filesystem::path(file).lexically_normal().string();
  reading_.open.push_back(key);
  for (const NodeEntry& entry : document.entries) {
    if (std::find(kTopKeys.begin(), kTopKeys.end(), entry.key.text) == kTopKeys.end()) {
      unknown_key(entry.key);
    }
    if (entry.key.text == "include") include(entry.value);
  }
  reading_.open.pop_back();
  expand_tables(document, reading_);
  documents_.push_back(std::make_unique<const Node>(std::move(document)));
}

void SweepReader::unknown_key(const Node& key) {
  reading_.mistake(key.where, "unknown key '" + key.text + "'", [&] {
    const std::vector<std::string> paths = all_paths();
    if (std::find(paths.begin(), paths.end(), key.text) != paths.end()) {
      return "'" + key.text + "' goes under 'base:' or, to be swept, under 'axes:'";
    }
    const std::string_view advice = advice_on_word(key.text);
    return advice.empty() ? suggestion(key.text, kTopKeys, "known keys") : std::string(advice);
  });
}

void SweepReader::include(const Node& node) {
  const std::span<const Node> files =
      node.is_sequence() ? std::span(node.items) : std::span(&node, 1);
  for (const Node& item : files) {
    const auto name = read_text(item, "include", reading_);
    if (!name) continue;
    const std::filesystem::path file = relative_to(item.where, *name);
    const std::string key = file.lexically_normal().string();
    if (std::find(reading_.open.begin(), reading_.open.end(), key) != reading_.open.end()) {
      reading_.mistake(item.where, "'" + *name + "' includes itself",
                       "break the circle of includes");
      continue;
    }
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error)) {
      reading_.mistake(item.where, "include: there is no file '" + *name + "'",
                       [&] { return similar_file_hint(file); });
      continue;
    }
    if (!reading_.may_read(item.where)) return;
    gather(read_yaml_file(file, reading_.limits), file.string());
  }
}

const Node* SweepReader::last(std::string_view key) const {
  for (auto it = documents_.rbegin(); it != documents_.rend(); ++it) {
    if (const Node* node = (*it)->find(key)) return node;
  }
  return nullptr;
}
void SweepReader::read_base(const Node* seed) {
  const engine::LeafTable& table = engine::leaf_table();
  Location seed_in_base;
  each("base", [&](const Node& node) {
    if (node.is_null()) return;
    if (!node.is_map()) {
      reading_.mistake(node.where, "base is " + std::string(name_of(node.kind)) + ", not a map",
                       "write one field a line, as in 'task: step'");
      return;
    }
    for (const Assignment& assignment : read_fields(node, {}, reading_)) {
      if (assignment.path == "seed") seed_in_base = assignment.where;
      base_fields_.push_back({assignment.path, assignment.where});
      for (const Edit& edit : assignment.edits) {
        if (const int role = role_of(engine::leaf_at(edit.leaf).path); role != kNone) {
          roles_in_base_.emplace(role, assignment.where);
        }
        take_into_base(edit);
      }
    }
    note_overrides(node);
  });
  if (seed != nullptr) {
    if (seed_in_base.line > 0) {
      reading_.mistake(seed->where, "the seed is set twice",
                       "it is already set in 'base', on line " + std::to_string(seed_in_base.line));
    }
    const int leaf = table.find_leaf("seed");
    if (const auto value = read_value(table.leaves[std::size_t(leaf)], *seed, "seed", reading_)) {
      apply({leaf, *value}, parts_.base);
    }
  }
  for (const engine::Section& section : table.sections) {
    if (!engine::of_role(table.leaves[section.first_leaf])) {
      engine::complete_section(parts_.base, section);
    }
  }
}

// Fields beside a `from`, which are one assignment with it.
void SweepReader::note_overrides(const Node& base) {
  for (const NodeEntry& section : base.entries) {
    if (section.value.find("from") == nullptr && section.value.find("hf_config") == nullptr)
      continue;
    note_fields(section.value, meant_by(section.key.text));
  }
}

void SweepReader::note_fields(const Node& section, const std::string& path) {
  for (const NodeEntry& field : section.entries) {
    const std::string& key = field.key.text;
    if (key == "from" || key == "hf_config" || key == "name") continue;
    const std::string inside = path + "." + key;
    if (field.value.is_map()) {
      note_fields(field.value, inside);
    } else {
      base_fields_.push_back({inside, field.key.where});
    }
  }
}

void SweepReader::take_into_base(const Edit& edit) {
  const std::vector<engine::Leaf>& leaves = engine::leaf_table().leaves;
  const int presence = leaves[std::size_t(edit.leaf)].presence;
  if (presence < 0) {
    apply(edit, parts_.base);
    return;
  }
  if (!states(leaves[std::size_t(presence)].path)) {
    apply({presence, true}, parts_.base);
  }
  std::erase_if(parts_.stated_of_roles, [&](const Edit& old) { return old.leaf == edit.leaf; });
  parts_.stated_of_roles.push_back(edit);
}

bool SweepReader::states(std::string_view path) const {
  const auto covers = [path](std::string_view said) {
    return said == path || path.starts_with(std::string(said) + ".");
  };
  return std::ranges::any_of(base_fields_, covers, &StatedField::path) ||
         std::ranges::any_of(parts_.axes, [&](const Axis& axis) { return covers(axis.path); }) ||
         std::ranges::any_of(parts_.derivations, [&](const Derivation& derivation) {
           return covers(engine::leaf_table().leaves[std::size_t(derivation.leaf)].path);
         });
}

// `device == 'h100-smx'` is never true, and silently so. Only a name that is near another one is
// taken for a slip: a resolved sweep must read without the library it came from.
void SweepReader::check_compared() {
  const engine::LeafTable& table = engine::leaf_table();
  std::map<std::string, std::vector<std::string>> names_in;  // by library
  for (const ComparedText& compared : reading_.compared) {
    const engine::Leaf& leaf = table.leaves[std::size_t(compared.leaf)];
    if (leaf.kind != engine::LeafKind::text || !leaf.path.ends_with(".name")) continue;
    const int section = table.find_section(leaf.path.substr(0, leaf.path.size() - 5));
    if (section < 0) continue;
    const std::string library(table.sections[std::size_t(section)].library);
    if (!names_in.contains(library)) names_in[library] = reading_.library.names(library);
    std::vector<std::string> names = names_in[library];
    names.push_back(engine::leaf_text(parts_.base, leaf));
    for (const Axis& axis : parts_.axes) {
      for (const Edit& edit : axis.edits) {
        if (edit.leaf == compared.leaf) names.push_back(std::get<std::string>(edit.value));
      }
    }
    if (std::find(names.begin(), names.end(), compared.text) != names.end()) continue;
    const std::string near = nearest(compared.text, names);
    if (near.empty()) continue;
    reading_.mistake(compared.where, "there is no '" + compared.text + "' among the " + library,
                     "did you mean '" + near + "'?");
  }
}

// A sweep without a device or a model is a slip: the defaults are no machine anyone has. A few fields make none either.
void SweepReader::check_whole() {
  struct Needed {
    std::string section, example;
    std::vector<std::string> fields;  // which one that the sweep states itself has at least
  };
  const Needed all[] = {
      {"device", "h100-sxm", {"memory_capacity", "memory_bandwidth"}},
      {"model", "llama-3.1-70b", {"layers", "hidden"}},
  };
  for (const auto& [section, example, fields] : all) {
    const auto lacks = [&](const std::string& field) { return !states(section + "." + field); };
    const auto missing = std::ranges::find_if(fields, lacks);
    if (missing == fields.end()) continue;
    const bool something = std::ranges::any_of(base_fields_, [&](const StatedField& field) {
      return field.path.starts_with(section + ".");
    });
    reading_.mistake(root_where_,
                     "the sweep names no " + section +
                         (something ? ", and what it states has no " + *missing : ""),
                     "add one under 'base:', as in '" + section + ": " + example + "'");
  }
}

// Of a sweep over devices their names stand on the axis, and none in the base. Who describes a device of his own may name it, but not his
// model as well, or looks that up.
bool SweepReader::written_out() const {
  const auto names = [this](std::string_view path) {
    const int name = engine::leaf_table().find_leaf(path);
    return std::ranges::find(base_fields_, path, &StatedField::path) != base_fields_.end() ||
           std::ranges::any_of(parts_.axes, [name](const Axis& axis) {
             return std::ranges::find(axis.edits, name, &Edit::leaf) != axis.edits.end();
           });
  };
  return reading_.specs.empty() && names("device.name") && names("model.name");
}

// `model: {name: llama-3.1-8b}` gives a label to whatever the model is, which is hardly what is meant.
void SweepReader::check_labels(const std::vector<Location>& places) {
  const engine::LeafTable& table = engine::leaf_table();
  constexpr std::string_view end = ".name";
  const auto refuse = [&](const std::string& path, const std::string& label, const Location& where,
                          const std::string& written) {
    const std::string name = path.substr(0, path.size() - end.size());
    const int section = table.find_section(name);
    if (section < 0) return;
    const std::string library(table.sections[std::size_t(section)].library);
    if (library.empty() || !reading_.library.find(library, label)) return;
    reading_.mistake(where, "'" + path + "' is a label and brings nothing of '" + label + "'",
                     "write '" + name + ": " + written + "'");
  };
  const auto text_at = [&](const std::string& path) -> std::string {
    const int leaf = path.ends_with(end) ? table.find_leaf(path) : -1;
    const bool text = leaf >= 0 && engine::leaf_at(leaf).kind == engine::LeafKind::text;
    return text ? engine::leaf_text(parts_.base, engine::leaf_at(leaf)) : "";
  };
  const bool all_said = written_out();
  for (const StatedField& field : base_fields_) {
    const std::string label = all_said ? "" : text_at(field.path);
    if (!label.empty()) refuse(field.path, label, field.where, label);
  }
  for (std::size_t i = 0; i < parts_.axes.size(); ++i) {
    const Axis& axis = parts_.axes[i];
    if (!axis.path.ends_with(end)) continue;
    for (const Edit& edit : axis.edits) {
      const auto* label = std::get_if<std::string>(&edit.value);
      if (label != nullptr) refuse(axis.path, *label, places[i], "[" + *label + ", ...]");
    }
  }
}

// Names of files become names of specs, and rows carry them: readers of Parquet want UTF-8.
void SweepReader::check_names(const std::string& name) {
  const auto check = [&](const std::string& text) {
    if (is_utf8(text)) return;
    reading_.mistake(root_where_, "the name '" + text + "' is not UTF-8 text",
                     "rename the file it comes from, or state 'name:' in it");
  };
  check(name);
  for (const engine::Leaf& leaf : engine::leaf_table().leaves) {
    if (leaf.kind == engine::LeafKind::text) check(engine::leaf_text(parts_.base, leaf));
  }
  for (const Axis& axis : parts_.axes) {
    for (const Edit& edit : axis.edits) {
      if (const auto* text = std::get_if<std::string>(&edit.value)) check(*text);
    }
  }
}

}  // namespace sweep
