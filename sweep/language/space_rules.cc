// `require`, `derive`, and what conditions may look at.
#include <algorithm>

#include "sweep/language/inert_axes.h"
#include "sweep/language/read_fields.h"
#include "sweep/language/read_formula.h"
#include "sweep/language/read_value.h"
#include "sweep/language/space_reader.h"
#include "sweep/language/suggest.h"

namespace sweep {

using engine::Leaf;
using engine::Location;

namespace {}  // namespace

std::vector<int> SpaceReader::read_requirements(const Node& node, bool everywhere) {
  std::vector<int> numbers;
  const auto add = [&](const Node& item) {
    const Node* expression = &item;
    std::string reason;
    if (item.is_map()) {
      expression = item.find("expr");
      for (const NodeEntry& entry : item.entries) {
        if (entry.key.text == "reason") {
          reason = read_text(entry.value, "reason", reading_).value_or("");
        } else if (entry.key.text != "expr") {
          reading_.mistake(entry.key.where, "unknown key '" + entry.key.text + "' in a requirement",
                           suggestion(entry.key.text, {"expr", "reason"}, "known keys"));
        }
      }
      if (expression == nullptr) {
        reading_.mistake(item.where, "a requirement without 'expr'",
                         "write '{expr: \"parallel.tp <= 8\", reason: \"one node\"}'");
        return;
      }
    }
    auto formula = read_condition(*expression, "require", reading_);
    if (!formula) return;
    Requirement requirement;
    requirement.reason = reason.empty() ? formula->source : reason;
    requirement.everywhere = everywhere;
    requirement.formula = int(parts_.formulas.size());
    parts_.formulas.push_back(std::move(*formula));
    numbers.push_back(int(parts_.requirements.size()));
    parts_.requirements.push_back(std::move(requirement));
  };
  if (node.is_sequence()) {
    for (const Node& item : node.items) add(item);
  } else if (!node.is_null()) {
    add(node);
  }
  return numbers;
}

void SpaceReader::refuse_taken(const Node& derived) {
  const auto taken = taken_.find(derived.text);
  if (taken == taken_.end()) return;
  const Setter& setter = taken->second;
  const bool swept = setter.kind == Setter::Kind::axis;
  reading_.mistake(derived.where,
                   "derive: '" + derived.text + "' is also " +
                       (swept ? "an axis" : "set by the base of a sub-sweep"),
                   setter.name() + " is on line " + std::to_string(setter.where.line) +
                       "; a leaf is either " + (swept ? "swept" : "set") + " or derived");
}

void SpaceReader::read_derivations(const Node& node) {
  if (node.is_null()) return;
  if (!node.is_map()) {
    reading_.mistake(node.where, "derive is " + std::string(name_of(node.kind)) + ", not a map",
                     "write it as in 'derive: {step.cached: \"step.context / 2\"}'");
    return;
  }
  for (const NodeEntry& entry : node.entries) {
    const Target target = find_target(entry.key, reading_);
    if (target.section != nullptr) {
      reading_.mistake(entry.key.where, "derive: '" + entry.key.text + "' has many fields",
                       "derive one of them, as in '" +
                           engine::leaf_at(int(target.section->first_leaf)).path + "'");
    }
    if (target.leaf == nullptr) continue;
    auto formula = read_derivation(entry.value, *target.leaf, "derive", reading_);
    Derivation derivation;
    derivation.leaf = int(target.leaf - engine::leaf_table().leaves.data());
    // One that reads its own value before goes on from what is swept.
    const bool goes_on =
        formula && std::ranges::find(formula->leaves, derivation.leaf) != formula->leaves.end();
    if (!goes_on) refuse_taken(entry.key);
    if (!formula) continue;
    for (const auto& [leaf, where] : derived_) {
      if (leaf == derivation.leaf) {
        reading_.mistake(entry.key.where, "derive: '" + entry.key.text + "' is derived twice",
                         "the other one is on line " + std::to_string(where.line));
      }
    }
    derivation.formula = int(parts_.formulas.size());
    parts_.formulas.push_back(std::move(*formula));
    derivation.requirement = int(parts_.requirements.size());
    // Infinite values, NaN and those beyond all whole numbers lie in no range.
    const char* kind =
        target.leaf->kind == engine::LeafKind::integer ? "a whole number, " : "a number, ";
    const std::string range = range_text(*target.leaf);
    parts_.requirements.push_back({kNone,
                                   "derived " + entry.key.text + " is " +
                                       (range.empty() ? "a value it can take" : kind + range),
                                   true});
    derived_.emplace_back(derivation.leaf, entry.value.where);
    parts_.derivations.push_back(derivation);
  }
}

void SpaceReader::check_order() {
  // A derivation sees those before it.
  for (std::size_t i = 0; i < parts_.derivations.size(); ++i) {
    for (const int leaf : parts_.formulas[std::size_t(parts_.derivations[i].formula)].leaves) {
      for (std::size_t later = i + 1; later < parts_.derivations.size(); ++later) {
        if (parts_.derivations[later].leaf != leaf) continue;
        reading_.mistake(derived_[i].second,
                         "derive: '" + engine::leaf_at(derived_[i].first).path + "' uses '" +
                             engine::leaf_at(leaf).path + "', which is derived after it",
                         "list '" + engine::leaf_at(leaf).path + "' first");
      }
    }
  }
  const auto meet = [](const Trail& a, const Trail& b) {
    for (const auto& [concat, branch] : a) {
      for (const auto& [other_concat, other_branch] : b) {
        if (concat == other_concat && branch != other_branch) return false;
      }
    }
    return true;
  };
  const auto sets = [](const Axis& axis, int leaf) {
    return axis.interval.leaf == leaf ||
           std::any_of(axis.edits.begin(), axis.edits.end(),
                       [&](const Edit& edit) { return edit.leaf == leaf; });
  };
  for (std::size_t i = 0; i < noted_.size(); ++i) {
    for (const auto& [formula, where] : noted_[i].conditions) {
      for (const int leaf : parts_.formulas[std::size_t(formula)].leaves) {
        for (const auto& [derived, derived_at] : derived_) {
          if (derived != leaf) continue;
          reading_.mistake(
              where, "when: '" + engine::leaf_at(leaf).path + "' is derived, and axes come first",
              "use the names it is derived from");
        }
        for (std::size_t later = i; later < noted_.size(); ++later) {
          if (noted_[later].conditions.empty() || !meet(noted_[i].trail, noted_[later].trail) ||
              !sets(parts_.axes[later], leaf)) {
            continue;
          }
          const std::string& path = parts_.axes[later].path;
          reading_.mistake(where,
                           later == i
                               ? "when: the axis '" + path + "' depends on itself"
                               : "when: the axis '" + path + "' comes later and has a 'when' too",
                           later == i ? "a condition is about other axes"
                                      : "list '" + path + "' before this axis");
        }
      }
    }
  }
}

std::vector<Location> SpaceReader::places() const {
  std::vector<Location> places;
  for (const Noted& noted : noted_) places.push_back(noted.where);
  return places;
}

void SpaceReader::check_inert() const {
  check_inert_axes(parts_, places(), reading_);
  check_shadowed_values(parts_, places(), reading_);
}

}  // namespace sweep
