#include "sweep/language/possibilities.h"

#include <numeric>
#include <ranges>
#include <unordered_set>

#include "engine/leaves/leaves.h"
#include "sweep/space/roles.h"

namespace sweep {

namespace {

// Axes below a node, and those that are overrides of sub-sweeps' bases.
void add_axes(const SpaceNode& node, std::vector<int>& axes);

void add_axes(const Branch& branch, std::vector<int>& axes) {
  axes.insert(axes.end(), branch.fixed.begin(), branch.fixed.end());
  add_axes(branch.node, axes);
}

void add_axes(const SpaceNode& node, std::vector<int>& axes) {
  if (node.axis != kNone) axes.push_back(node.axis);
  for (const SpaceNode& child : node.children) add_axes(child, axes);
  for (const Branch& branch : node.branches) add_axes(branch, axes);
}

}  // namespace

Possibilities::Possibilities(const SpaceParts& parts) : parts_(&parts), axes_(parts.axes.size()) {
  std::iota(axes_.begin(), axes_.end(), 0);
  find_constant(parts.root);
}

Possibilities Possibilities::without(const SpaceNode& concat) const {
  Possibilities around = *this;
  around.known_.clear();
  std::vector<int> inside;
  add_axes(concat, inside);
  const std::unordered_set<int> gone(inside.begin(), inside.end());
  std::erase_if(around.axes_, [&gone](int axis) { return gone.contains(axis); });
  return around;
}

Possibilities Possibilities::with(const Branch& branch) const {
  Possibilities here = *this;
  here.known_.clear();
  add_axes(branch, here.axes_);
  here.always_.insert(branch.fixed.begin(), branch.fixed.end());
  here.find_constant(branch.node);
  return here;
}

const PossibleValues& Possibilities::of(int leaf) const {
  const auto known = known_.find(leaf);
  return known != known_.end() ? known->second : known_.emplace(leaf, found(leaf)).first->second;
}

PossibleValues Possibilities::found(int leaf) const {
  const engine::Leaf& entry = engine::leaf_at(leaf);
  // A role is like the main deployment, and is there where something is said of it.
  PossibleValues possible = entry.of_main >= 0 ? of(entry.of_main) : PossibleValues{};
  for (const Derivation& derivation : parts_->derivations) {
    possible.anything = possible.anything || derivation.leaf == leaf;
  }
  bool replaced = false;
  for (const int i : axes_) {
    const Axis& axis = parts_->axes[std::size_t(i)];
    if (axis.role == leaf) possible.values.push_back(1);
    possible.anything = possible.anything || axis.interval.leaf == leaf;
    std::size_t settings = 0;
    for (const Edit& edit : axis.edits) {
      if (edit.leaf != leaf) continue;
      possible.values.push_back(engine::condition_value(edit.value));
      ++settings;
    }
    replaced =
        replaced || (settings > 0 && settings == axis.settings.size() && always_.contains(i));
  }
  if (!replaced) {
    possible.values.push_back(engine::condition_value(engine::get_leaf(parts_->base, entry)));
  }
  std::ranges::sort(possible.values);
  const auto same = std::ranges::unique(possible.values);
  possible.values.erase(same.begin(), same.end());
  return possible;
}

engine::CanBe Possibilities::can_be() const {
  return {.value =
              [this](int leaf, const std::function<bool(double)>& predicate) {
                return of(leaf).any(predicate);
              },
          // Where what it follows from differs from point to point, it may hold in some.
          .fact =
              [this](const engine::Test& test, int leaf) {
                const auto varies = [this](int behind) {
                  return std::ranges::binary_search(parts_->varied_leaves, behind);
                };
                return std::ranges::any_of(engine::leaves_behind(test, leaf), varies) ||
                       engine::holds_in(parts_->base, test, leaf);
              },
          .like_main = [this](int leaf) { return !is_stated(*parts_, leaf); }};
}

std::set<int> Possibilities::read_by_formulas() const {
  std::set<int> read;
  const auto add = [&](int formula) {
    if (formula == kNone) return;
    const std::vector<int>& leaves = parts_->formulas[std::size_t(formula)].leaves;
    read.insert(leaves.begin(), leaves.end());
  };
  for (const int i : axes_) {
    const Axis& axis = parts_->axes[std::size_t(i)];
    add(axis.when);
    for (const Setting& setting : axis.settings) add(setting.when);
  }
  // Derivations run in order, so that one can only follow from those before it.
  const engine::CanBe can_be = this->can_be();
  for (const Derivation& derivation : std::views::reverse(parts_->derivations)) {
    const bool counts = !engine::why_inert(derivation.leaf, can_be);
    if (counts || read.contains(derivation.leaf)) add(derivation.formula);
  }
  return read;
}

// Axes that are part of every point: not in a sub-sweep, and without a condition.
void Possibilities::find_constant(const SpaceNode& node) {
  if (node.axis != kNone && unconditional(node.axis)) always_.insert(node.axis);
  for (const SpaceNode& child : node.children) find_constant(child);
}

bool Possibilities::unconditional(int number) const {
  const Axis& axis = parts_->axes[std::size_t(number)];
  return axis.when == kNone && std::ranges::all_of(axis.settings, [](const Setting& setting) {
           return setting.when == kNone;
         });
}

}  // namespace sweep
