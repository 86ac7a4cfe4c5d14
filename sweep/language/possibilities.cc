#include "sweep/language/possibilities.h"

#include <ranges>

#include "engine/leaves/leaves.h"
#include "sweep/space/roles.h"

namespace sweep {

Possibilities::Possibilities(const SpaceParts& parts)
    : parts_(parts), always_(parts.axes.size()), never_(parts.axes.size()) {
  find_constant(parts.root);
}

Possibilities Possibilities::inside(const Branch& branch,
                                    const std::vector<bool>& elsewhere) const {
  Possibilities here = *this;
  for (const int axis : branch.fixed) here.always_[std::size_t(axis)] = true;
  here.find_constant(branch.node);
  for (std::size_t i = 0; i < elsewhere.size(); ++i) {
    if (elsewhere[i]) here.never_[i] = true;
  }
  return here;
}

PossibleValues Possibilities::of(int leaf) const {
  const engine::Leaf& entry = engine::leaf_at(leaf);
  // A role is like the main deployment, and is there where something is said of it.
  PossibleValues possible = entry.of_main >= 0 ? of(entry.of_main) : PossibleValues{};
  for (const Derivation& derivation : parts_.derivations) {
    possible.anything = possible.anything || derivation.leaf == leaf;
  }
  bool replaced = false;
  for (std::size_t i = 0; i < parts_.axes.size(); ++i) {
    if (never_[i]) continue;
    const Axis& axis = parts_.axes[i];
    if (axis.role == leaf) possible.values.push_back(1);
    possible.anything = possible.anything || axis.interval.leaf == leaf;
    std::size_t settings = 0;
    for (const Edit& edit : axis.edits) {
      if (edit.leaf != leaf) continue;
      possible.values.push_back(engine::condition_value(edit.value));
      ++settings;
    }
    replaced = replaced || (settings > 0 && settings == axis.settings.size() && always_[i]);
  }
  if (!replaced) {
    possible.values.push_back(engine::condition_value(engine::get_leaf(parts_.base, entry)));
  }
  return possible;
}

engine::CanBe Possibilities::can_be() const {
  return {.value =
              [this](int leaf, const std::function<bool(double)>& predicate) {
                return of(leaf).any(predicate);
              },
          // Where what it follows from differs from point to point, it may hold in some.
          .fact =
              [this](const engine::UseCondition& condition, int leaf) {
                const auto varies = [this](int behind) {
                  return std::ranges::binary_search(parts_.varied_leaves, behind);
                };
                return std::ranges::any_of(engine::leaves_behind(condition, leaf), varies) ||
                       engine::holds_in(parts_.base, condition, leaf);
              },
          .like_main = [this](int leaf) { return !is_stated(parts_, leaf); }};
}

std::set<int> Possibilities::read_by_formulas() const {
  std::set<int> read;
  const auto add = [&](int formula) {
    if (formula == kNone) return;
    const std::vector<int>& leaves = parts_.formulas[std::size_t(formula)].leaves;
    read.insert(leaves.begin(), leaves.end());
  };
  for (const Axis& axis : parts_.axes) {
    add(axis.when);
    for (const Setting& setting : axis.settings) add(setting.when);
  }
  // Derivations run in order, so that one can only follow from those before it.
  const engine::CanBe can_be = this->can_be();
  for (const Derivation& derivation : std::views::reverse(parts_.derivations)) {
    const bool counts = engine::why_inert(derivation.leaf, can_be) == nullptr;
    if (counts || read.contains(derivation.leaf)) add(derivation.formula);
  }
  return read;
}

// Axes that are part of every point: not in a sub-sweep, and without a condition.
void Possibilities::find_constant(const SpaceNode& node) {
  if (node.axis != kNone) always_[std::size_t(node.axis)] = unconditional(node.axis);
  for (const SpaceNode& child : node.children) find_constant(child);
}

bool Possibilities::unconditional(int number) const {
  const Axis& axis = parts_.axes[std::size_t(number)];
  return axis.when == kNone && std::ranges::all_of(axis.settings, [](const Setting& setting) {
           return setting.when == kNone;
         });
}

}  // namespace sweep
