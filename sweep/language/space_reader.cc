#include "sweep/language/space_reader.h"

#include <algorithm>
#include <set>

#include "sweep/language/read_fields.h"
#include "sweep/language/read_formula.h"
#include "sweep/language/read_value.h"
#include "sweep/language/suggest.h"

namespace sweep {

using engine::Location;

namespace {

// A node of size 0 stands for an axis with mistakes.
SpaceNode empty_node() {
  SpaceNode node;
  node.kind = SpaceNode::Kind::values;
  node.size = 0;
  return node;
}

std::string place_text(const Location& where) {
  return where.file + ":" + std::to_string(where.line) + ":" + std::to_string(where.column);
}

}  // namespace

// ---- bookkeeping ---------------------------------------------------------------------------------

int SpaceReader::label_column(const std::string& name) {
  for (std::size_t i = 0; i < parts_.label_columns.size(); ++i) {
    if (parts_.label_columns[i].name == name) return int(i);
  }
  parts_.label_columns.push_back({name, {}});
  codes_.emplace_back();
  return int(parts_.label_columns.size()) - 1;
}

std::int32_t SpaceReader::label_code(int column, const std::string& label) {
  std::vector<std::string>& values = parts_.label_columns[std::size_t(column)].values;
  const auto [known, fresh] =
      codes_[std::size_t(column)].emplace(label, std::int32_t(values.size()));
  if (fresh) values.push_back(label);
  return known->second;
}

void SpaceReader::take_path(const std::string& path, const Setter& setter) {
  const auto [known, fresh] = taken_.emplace(path, setter);
  if (fresh) return;
  const Setter& other = known->second;
  const bool alike = setter.kind == other.kind;
  std::string both = "an axis and by the base of a sub-sweep";
  if (alike) both = setter.kind == Setter::Kind::axis ? "two axes" : "the bases of two sub-sweeps";
  reading_.mistake(setter.where, "'" + path + "' is set by " + both,
                   (alike ? "the other one" : other.name()) + " is at " + place_text(other.where) +
                       "; remove one of them");
}

int SpaceReader::new_axis(const std::string& path, const Setter& setter) {
  const bool yields = setter.kind == Setter::Kind::yielding;
  if (!yields) take_path(path, setter);
  Axis axis;
  axis.path = path;
  axis.depth = yields ? 0 : depth_of(path);
  axis.yields = yields;
  parts_.axes.push_back(std::move(axis));
  noted_.push_back({trail_, setter.where, {}});
  return int(parts_.axes.size()) - 1;
}

int SpaceReader::add_condition(const Node& node) {
  auto formula = read_condition(node, "when", reading_);
  if (!formula) return kNone;
  parts_.formulas.push_back(std::move(*formula));
  return int(parts_.formulas.size()) - 1;
}

void SpaceReader::set_when(int axis, int formula, const Location& where) {
  if (formula == kNone || axis == kNone) return;
  if (parts_.axes[std::size_t(axis)].when != kNone) {
    reading_.mistake(where, "'" + parts_.axes[std::size_t(axis)].path + "' has two 'when'",
                     "join them with '&&'");
    return;
  }
  parts_.axes[std::size_t(axis)].when = formula;
  noted_[std::size_t(axis)].conditions.emplace_back(formula, where);
}

void SpaceReader::set_when_below(const SpaceNode& node, int formula, const Location& where) {
  set_when(node.axis, formula, where);
  for (const SpaceNode& child : node.children) set_when_below(child, formula, where);
  for (const Branch& branch : node.branches) set_when_below(branch.node, formula, where);
}

int SpaceReader::add_axis(const Node& path, AxisForm form, FormPlace place) {
  const auto kind = form.yields ? Setter::Kind::yielding : Setter::Kind::axis;
  const int number = new_axis(path.text, {kind, path.where});
  if (!form.interval) parts_.axes[std::size_t(number)].label_column = label_column(path.text);
  Axis& axis = parts_.axes[std::size_t(number)];
  if (form.interval) axis.interval = *form.interval;
  axis.edits = std::move(form.edits);
  axis.settings = std::move(form.settings);
  for (std::size_t i = 0; i < axis.settings.size(); ++i) {
    Setting& setting = axis.settings[i];
    setting.label = label_code(axis.label_column, form.labels[i]);
    if (form.whens[i] == nullptr) continue;
    setting.when = add_condition(*form.whens[i]);
    if (setting.when != kNone) {
      noted_[std::size_t(number)].conditions.emplace_back(setting.when, form.whens[i]->where);
    }
  }
  if (form.when != nullptr) {
    if (place != FormPlace::axis || in_zip_) {
      const std::string group = place == FormPlace::sample ? "sample" : "zip";
      reading_.mistake(
          form.when->where, path.text + ": 'when' on one member of a " + group,
          "members move together: put 'when' beside them, in the " + group + " itself");
    } else {
      set_when(number, add_condition(*form.when), form.when->where);
    }
  }
  return number;
}

int SpaceReader::add_fixed(const Assignment& assignment) {
  const int number = new_axis(assignment.path, {Setter::Kind::base, assignment.where});
  Axis& axis = parts_.axes[std::size_t(number)];
  axis.edits = assignment.edits;
  axis.settings.push_back({.last_edit = std::uint32_t(axis.edits.size())});
  return number;
}

// ---- the tree ------------------------------------------------------------------------------------

SpaceNode SpaceReader::read_axes(const Node& list) {
  SpaceNode node;
  if (!list.is_sequence()) {
    if (!list.is_null()) {
      reading_.mistake(list.where,
                       "'axes' is a list, and this is " + std::string(name_of(list.kind)),
                       "start each axis with a dash, as in '- step.batch: [1, 2, 4]'");
    }
    return node;
  }
  for (const Node& item : list.items) {
    if (!item.is_map() || item.entries.empty()) {
      reading_.mistake(item.where,
                       "an axis is a path and its values, not " + std::string(name_of(item.kind)),
                       "write it as in '- step.batch: [1, 2, 4]'");
      continue;
    }
    SpaceNode child = read_item(item);
    if (child.size > 0) node.children.push_back(std::move(child));
  }
  return node;
}

// One entry of the list: an axis, and perhaps its `when`.
SpaceNode SpaceReader::read_item(const Node& item) {
  const NodeEntry* axis = nullptr;
  const Node* when = nullptr;
  for (const NodeEntry& entry : item.entries) {
    if (entry.key.text == "when") {
      when = &entry.value;
    } else if (axis == nullptr) {
      axis = &entry;
    } else {
      reading_.mistake(entry.key.where,
                       "'" + entry.key.text + "' in the entry of '" + axis->key.text + "'",
                       "start a new entry with '- " + entry.key.text +
                           ":', or move both together with 'zip: {...}'");
    }
  }
  if (axis == nullptr) {
    reading_.mistake(item.where, "a 'when' without an axis",
                     "write it in the entry of its axis, or in the axis itself");
    return empty_node();
  }
  SpaceNode node = read_entry(*axis);
  if (when != nullptr) set_group_when(node, *when);
  return node;
}

void SpaceReader::set_group_when(const SpaceNode& node, const Node& when) {
  if (in_zip_) {
    reading_.mistake(when.where, "'when' on one member of a zip",
                     "members move together: put 'when' beside them, in the zip itself");
  } else if (node.kind == SpaceNode::Kind::concat) {
    reading_.mistake(when.where, "'when' on a concat", "put it on the axes of its sub-sweeps");
  } else {
    set_when_below(node, add_condition(when), when.where);
  }
}

SpaceNode SpaceReader::read_entry(const NodeEntry& entry) {
  const std::string& key = entry.key.text;
  if (key == "zip") return read_zip(entry);
  if (key == "concat") return read_concat(entry);
  if (key == "sample") return read_sample(entry);
  if (key == "product") return read_axes(entry.value);
  return read_values_axis(entry, in_zip_ ? FormPlace::zip : FormPlace::axis);
}

SpaceNode SpaceReader::read_values_axis(const NodeEntry& entry, FormPlace place) {
  SpaceNode node = empty_node();
  Node path = entry.key;
  path.text = meant_by(path.text);
  const Target target = find_target(path, reading_);
  if (target.leaf == nullptr && target.section == nullptr) return node;
  AxisForm form = read_form(target, entry, place, reading_);
  node.size = form.settings.size();
  node.axis = add_axis(path, std::move(form), place);
  return node;
}

SpaceNode SpaceReader::read_zip(const NodeEntry& entry) {
  SpaceNode node;
  node.kind = SpaceNode::Kind::zip;
  const Node* when = nullptr;
  std::vector<std::pair<std::string, Location>> members;
  const bool outer = std::exchange(in_zip_, true);
  const auto add = [&](const NodeEntry& member) {
    SpaceNode child = read_entry(member);
    if (!compute_size(child, parts_)) child.size = 0;
    members.emplace_back(member.key.text, member.value.where);
    node.children.push_back(std::move(child));
  };
  if (entry.value.is_map()) {
    for (const NodeEntry& member : entry.value.entries) {
      if (member.key.text == "when") {
        when = &member.value;
      } else {
        add(member);
      }
    }
  } else if (entry.value.is_sequence()) {
    for (const Node& item : entry.value.items) {
      if (item.is_map() && item.entries.size() == 1 && item.entries[0].key.text == "when") {
        when = &item.entries[0].value;
      } else if (item.is_map() && item.entries.size() == 1) {
        add(item.entries[0]);
      } else {
        reading_.mistake(item.where, "a member of a zip is a path and its values",
                         "write it as in '- step.batch: [1, 2, 4]'");
      }
    }
  }
  in_zip_ = outer;
  if (node.children.empty()) {
    reading_.mistake(entry.value.where, "the zip has no members",
                     "write 'zip: {parallel.tp: [1, 2], step.batch: [8, 16]}'");
    node.size = 0;
    return node;
  }
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    const std::uint64_t first = node.children[0].size;
    const std::uint64_t size = node.children[i].size;
    if (first == size || first == 0 || size == 0) continue;
    reading_.mistake(members[i].second,
                     "zip: '" + members[i].first + "' has " + std::to_string(size) +
                         " values, but '" + members[0].first + "' has " + std::to_string(first),
                     "members of a zip move together: give them equally many values");
  }
  if (when != nullptr) set_group_when(node, *when);
  node.size = node.children[0].size;
  return node;
}

SpaceNode SpaceReader::read_concat(const NodeEntry& entry) {
  SpaceNode node;
  node.kind = SpaceNode::Kind::concat;
  if (!entry.value.is_sequence() || entry.value.items.empty()) {
    reading_.mistake(entry.value.where, "concat takes a list of sub-sweeps",
                     "write '- concat: [{name: a, axes: [...]}, {name: b, axes: [...]}]'");
    node.size = 0;
    return node;
  }
  const int number = ++concats_;
  const Setters before = taken_;
  Setters after = before;
  std::vector<std::string> names;
  std::vector<std::string> shown;  // the same, with the numbers of those that have none
  std::set<std::string> known;
  for (std::size_t i = 0; i < entry.value.items.size(); ++i) {
    taken_ = before;
    trail_.emplace_back(number, int(i));
    names.push_back("");
    node.branches.push_back(read_branch(entry.value.items[i], names.back()));
    shown.push_back(names.back().empty() ? std::to_string(i + 1) : names.back());
    const std::string& name = shown.back();
    if (!known.insert(name).second) {
      reading_.mistake(entry.value.items[i].where,
                       "concat: two sub-sweeps are named '" + name + "'",
                       "rows are told apart by that name; change one");
    }
    trail_.pop_back();
    after.merge(taken_);
  }
  taken_ = std::move(after);
  // Without a label, rows of different sub-sweeps could not be told apart.
  if (names.size() > 1 || !names.front().empty()) {
    node.label_column = label_column(number == 1 ? "concat" : "concat_" + std::to_string(number));
    for (std::size_t i = 0; i < names.size(); ++i) {
      node.branches[i].label = label_code(node.label_column, shown[i]);
    }
  }
  return node;
}

Branch SpaceReader::read_branch(const Node& node, std::string& name) {
  Branch branch;
  if (node.is_sequence()) {
    branch.node = read_axes(node);
    return branch;
  }
  if (!node.is_map()) {
    reading_.mistake(
        node.where,
        "a sub-sweep is a list of axes or a map, not " + std::string(name_of(node.kind)),
        "write '{name: a, base: {...}, axes: [...]}'");
    return branch;
  }
  const std::vector<std::string> keys{"name", "base", "axes", "require"};
  for (const NodeEntry& entry : node.entries) {
    const std::string& key = entry.key.text;
    if (key == "name") {
      name = read_text(entry.value, "name", reading_).value_or("");
    } else if (key == "base") {
      if (!entry.value.is_map()) {
        reading_.mistake(entry.value.where,
                         "base is " + std::string(name_of(entry.value.kind)) + ", not a map",
                         "write it as in 'base: {step: {batch: 8}}'");
        continue;
      }
      for (const Assignment& assignment : read_fields(entry.value, {}, reading_)) {
        branch.fixed.push_back(add_fixed(assignment));
      }
    } else if (key == "require") {
      branch.requirements = read_requirements(entry.value, false);
    } else if (key != "axes") {
      reading_.mistake(entry.key.where, "unknown key '" + key + "' in a sub-sweep",
                       suggestion(key, keys, "known keys"));
    }
  }
  if (const Node* axes = node.find("axes")) branch.node = read_axes(*axes);
  return branch;
}

SpaceNode SpaceReader::replicates(std::int64_t count, const Node& node) {
  AxisForm form;
  const int leaf = engine::leaf_table().find_leaf("replicate");
  for (std::int64_t i = 0; i < count; ++i) form.add(std::to_string(i), {{leaf, i}});
  Node path = node;
  path.text = "replicate";
  SpaceNode result;
  result.kind = SpaceNode::Kind::values;
  result.axis = add_axis(path, std::move(form), FormPlace::axis);
  return result;
}

}  // namespace sweep
