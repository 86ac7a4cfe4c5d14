#include "sweep/language/read_fields.h"

#include <algorithm>
#include <map>
#include <set>

#include "sweep/language/hf_config.h"
#include "sweep/language/load_resources.h"
#include "sweep/language/load_spec.h"
#include "sweep/language/other_words.h"
#include "sweep/language/read_value.h"
#include "sweep/language/stated_rates.h"
#include "sweep/language/suggest.h"
#include "sweep/space/roles.h"

namespace sweep {
namespace {

using engine::Leaf;
using engine::LeafTable;
using engine::Section;

struct OtherName {
  std::string_view said, meant;
};
constexpr OtherName kOtherNames[] = {{"speculation.draft", "draft.model"}};

// Names one may write directly under a section.
std::vector<std::string> keys_under(const Section* section) {
  const std::string prefix = section == nullptr ? "" : section->path + ".";
  std::vector<std::string> keys;
  const auto add = [&](const std::string& path) {
    if (!path.starts_with(prefix)) return;
    std::string key = path.substr(prefix.size());
    if (key.find('.') == std::string::npos) keys.push_back(std::move(key));
  };
  for (const Leaf& leaf : engine::leaf_table().leaves) add(leaf.path);
  for (const Section& other : engine::leaf_table().sections) add(other.path);
  for (const OtherName& name : kOtherNames) add(std::string(name.said));
  if (section != nullptr && !section->library.empty()) keys.emplace_back("from");
  if (section != nullptr && section->library == "models") keys.emplace_back("hf_config");
  return keys;
}

// All paths, those below a section first.
std::vector<std::string> paths_from(const Section* section) {
  std::vector<std::string> paths = all_paths();
  if (section == nullptr) return paths;
  std::ranges::stable_partition(paths, [prefix = section->path + "."](const std::string& path) {
    return path.starts_with(prefix);
  });
  return paths;
}

// Of 'serving.from', the section whose specs have names; empty: it is no such path.
std::string section_named_from(std::string_view key, const Section* section) {
  constexpr std::string_view from = ".from";
  if (!key.ends_with(from)) return "";
  const std::string_view said = key.substr(0, key.size() - from.size());
  const std::string path = (section == nullptr ? "" : section->path + ".") + std::string(said);
  const int found = engine::leaf_table().find_section(path);
  const bool named =
      found >= 0 && !engine::leaf_table().sections[std::size_t(found)].library.empty();
  return named ? std::string(said) : "";
}

// What is meant in other words, or the nearest key at this level; failing that, the path elsewhere that ends in this key,
// rather one below this section than one of another.
std::string key_hint(const std::string& key, const Section* section) {
  const std::string_view advice =
      advice_on_word(section == nullptr ? key : section->path + "." + key);
  if (!advice.empty()) return std::string(advice);
  if (const std::string whole = section_named_from(key, section); !whole.empty()) {
    return "a spec is named by its section: '" + whole + ": NAME', or on an axis '" + whole +
           ": [NAME, NAME]'";
  }
  const std::vector<std::string> keys = keys_under(section);
  std::string near = nearest(key, keys);
  if (!near.empty()) return "did you mean '" + near + "'?";
  std::vector<std::string> ends;
  std::map<std::string, std::string> paths;
  for (const std::string& path : paths_from(section)) {
    const std::string end = path.substr(path.rfind('.') + 1);
    if (paths.emplace(end, path).second) ends.push_back(end);
  }
  near = key.find('.') == std::string::npos ? nearest(key, ends) : nearest(key, all_paths());
  // Beside a section's own keys, those of another section are alike by chance, unless a single letter of a long one is wrong.
  constexpr std::size_t telling = 4;
  const bool slip = key.size() >= telling && edit_distance(key, near) <= 1;
  if (section != nullptr && near != key && !slip) near.clear();
  const std::string elsewhere = paths.contains(near) ? paths[near] : near;
  if (elsewhere == key && section != nullptr) {
    const std::string top = section->path.substr(0, section->path.find('.'));
    return "'" + key + "' is written beside '" + top + "', not in " +
           (top == section->path ? "it" : "'" + section->path + "'") +
           "; known keys: " + listing(keys, 20);
  }
  if (!elsewhere.empty()) return "did you mean '" + elsewhere + "'?";
  return "known keys: " + listing(keys, 20);
}

}  // namespace

std::string meant_by(std::string_view path) {
  const auto* const found = std::ranges::find(kOtherNames, path, &OtherName::said);
  return std::string(found != std::end(kOtherNames) ? found->meant : path);
}

std::vector<std::string> all_paths() {
  std::vector<std::string> paths;
  for (const Leaf& leaf : engine::leaf_table().leaves) paths.push_back(leaf.path);
  for (const Section& section : engine::leaf_table().sections) paths.push_back(section.path);
  return paths;
}

std::vector<Edit> merged(const std::vector<Assignment>& assignments) {
  std::map<int, engine::LeafValue> values;
  for (const Assignment& assignment : assignments) {
    for (const Edit& edit : assignment.edits) values.insert_or_assign(edit.leaf, edit.value);
  }
  std::vector<Edit> edits;
  edits.reserve(values.size());
  for (auto& [leaf, value] : values) edits.push_back({leaf, std::move(value)});
  return edits;
}

Target find_target(const Node& path, Reading& reading) {
  const LeafTable& table = engine::leaf_table();
  const int leaf = table.find_leaf(path.text);
  if (leaf >= 0) return {&table.leaves[std::size_t(leaf)], nullptr};
  const int section = table.find_section(path.text);
  if (section >= 0) return {nullptr, &table.sections[std::size_t(section)]};
  reading.mistake(path.where, "unknown path '" + path.text + "'",
                  [&] { return key_hint(path.text, nullptr); });
  return {};
}

std::vector<Assignment> read_fields(const Node& map, const FieldScope& scope, Reading& reading) {
  const LeafTable& table = engine::leaf_table();
  const std::string prefix = scope.section == nullptr ? "" : scope.section->path + ".";
  std::vector<Assignment> assignments;
  std::map<std::string, int> lines;
  for (const NodeEntry& entry : map.entries) {
    const std::string& key = entry.key.text;
    if (key == "from" || key == "hf_config") {
      if (scope.section != nullptr && !scope.section->library.empty()) continue;  // read_section's
    }
    const std::string path = meant_by(prefix + key);
    const std::string said = scope.said + key;
    const int leaf = table.find_leaf(path);
    std::vector<Assignment> found;
    if (leaf >= 0) {
      if (auto value = read_value(table.leaves[std::size_t(leaf)], entry.value, said, reading)) {
        found.push_back({path, leaf_edits(leaf, std::move(*value), entry.value.where, reading),
                         entry.key.where});
      }
    } else if (const int section = table.find_section(path); section >= 0) {
      found = read_section(table.sections[std::size_t(section)], entry.value, said, reading);
    } else {
      reading.mistake(entry.key.where, "unknown key '" + key + "'",
                      [&] { return key_hint(key, scope.section); });
    }
    for (Assignment& assignment : found) {
      const auto [known, fresh] = lines.emplace(assignment.path, assignment.where.line);
      if (!fresh) {
        reading.mistake(assignment.where, "'" + assignment.path + "' is set twice",
                        "it is already set on line " + std::to_string(known->second));
        continue;
      }
      assignments.push_back(std::move(assignment));
    }
  }
  std::stable_sort(
      assignments.begin(), assignments.end(),
      [](const Assignment& a, const Assignment& b) { return depth_of(a.path) < depth_of(b.path); });
  return assignments;
}

namespace {

// A deployment beside the main one: `none`, or a map of what it has different, which may be empty.
std::vector<Assignment> read_role(const Section& section, int presence, const Node& node,
                                  const std::string& said, Reading& reading) {
  const bool none = node.is_scalar() && node.text == "none";
  if (!node.is_map() && !none) {
    reading.mistake(
        node.where,
        said + ": " + (node.is_scalar() ? "'" + node.text + "'" : std::string(name_of(node.kind))) +
            " is neither a map of fields nor 'none'",
        "write '" + said + ": {}' for one like the main deployment, or what differs, as in '" +
            said + ": {parallel: {tp: 4}}'");
    return {};
  }
  const std::string& path = engine::leaf_table().leaves[std::size_t(presence)].path;
  std::vector<Assignment> fields;
  if (!none) fields = read_fields(node, {&section, said + "."}, reading);
  if (std::ranges::find(fields, path, &Assignment::path) == fields.end()) {
    fields.insert(fields.begin(), {path, {{presence, !none}}, node.where});
  }
  return fields;
}

// A map that says what a scalar may have meant: its first field has it where that is one of the field's names.
std::string map_example(const Section& section, const Node& node) {
  const std::string key = keys_under(&section).front();
  const int leaf = engine::leaf_table().find_leaf(section.path + "." + key);
  if (!node.is_scalar() || leaf < 0) return "{" + key + ": ...}";
  const auto& names = engine::leaf_at(leaf).names;
  const bool named = std::ranges::find(names, node.text) != names.end();
  return "{" + key + ": " + (named ? node.text + ", ...}" : "...}");
}

}  // namespace

std::vector<Assignment> read_section(const Section& section, const Node& node,
                                     std::string_view said, Reading& reading) {
  const std::string name(said);
  const bool in_library = !section.library.empty();
  if (node.is_scalar() && in_library) {
    return {{section.path, named_spec(section, node, name, reading), node.where}};
  }
  if (const int role = role_of(section.path); role != kNone && depth_of(section.path) == 1) {
    return read_role(section, role, node, name, reading);
  }
  if (!node.is_map()) {
    reading.mistake(
        node.where,
        name + ": " + (node.is_scalar() ? "'" + node.text + "'" : std::string(name_of(node.kind))) +
            " is not a map of fields",
        in_library ? "write a name of '" + std::string(section.library) + "', or a map of fields"
                   : "write it as in '" + name + ": " + map_example(section, node) + "'");
    return {};
  }
  std::vector<Assignment> fields = read_fields(node, {&section, name + "."}, reading);
  const Node* from = in_library ? node.find("from") : nullptr;
  const Node* config = in_library ? node.find("hf_config") : nullptr;
  if (config != nullptr && section.library != "models") {
    reading.mistake(config->where, name + " takes no 'hf_config'", "only a model does");
    return {};
  }
  if (from != nullptr && config != nullptr) {
    reading.mistake(config->where, name + ": both 'from' and 'hf_config'", "keep one of them");
    return {};
  }
  if (from == nullptr && config == nullptr) return fields;

  Assignment whole{section.path, {}, node.where};
  whole.edits = from != nullptr ? from_spec(section, *from, name, reading)
                                : hf_spec(section, *config, name, reading);
  return {{section.path, made_from(section, whole, fields), node.where}};
}

}  // namespace sweep
