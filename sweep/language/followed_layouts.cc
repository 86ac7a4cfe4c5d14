#include "sweep/language/followed_layouts.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "engine/leaves/leaves.h"
#include "sweep/language/possibilities.h"

namespace sweep {
namespace {

// Others are beside each replica of the main deployment, or one with it: they follow its layout on purpose.
constexpr std::array<std::string_view, 3> kWithReplicasOfTheirOwn{"prefill", "encode", "rerank"};
constexpr std::array<std::string_view, 5> kDegrees{"tp", "pp", "dp", "ep", "cp"};

using Degrees = std::set<std::string_view>;

int leaf_of(std::string_view role, std::string_view degree) {
  const std::string of_main = fmt::format("parallel.{}", degree);
  return engine::leaf_table().find_leaf(role.empty() ? of_main
                                                     : fmt::format("{}.{}", role, of_main));
}

// The places of an axis in the tree: which sub-sweep of which concat it is part of.
using Way = std::vector<std::pair<const SpaceNode*, const Branch*>>;

bool may_meet(const Way& one, const Way& other) {
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    // Two concats side by side are crossed.
    if (one[i].first != other[i].first) return true;
    if (one[i].second != other[i].second) return false;
  }
  return true;
}

// What a sweep says of the layout of one role.
class SaidOfLayout {
 public:
  SaidOfLayout(std::string_view role, const SpaceParts& parts, const std::vector<StatedField>& base)
      : parts_(parts), ways_(parts.axes.size()) {
    find_ways(parts.root, {});
    for (const std::string_view degree : kDegrees) leaves_.push_back(leaf_of(role, degree));
    for (const StatedField& field : base) {
      const Degrees said = degrees_of(engine::leaf_table().find_leaf(field.path));
      if (!said.empty() && where_ == nullptr) where_ = &field.where;
      in_base_.insert(said.begin(), said.end());
    }
    for (const Derivation& derivation : parts.derivations) {
      in_base_.merge(degrees_of(derivation.leaf));
    }
  }

  // Where the base says something of it.
  const engine::Location* where() const { return where_; }
  // What points with one value of an axis are told, at most; without an axis, what all of them are.
  Degrees told(int axis, const Setting* setting) const {
    Degrees told = in_base_;
    for (std::size_t i = 0; i < parts_.axes.size(); ++i) {
      if (int(i) == axis || !meets(axis, i)) continue;
      for (const Edit& edit : parts_.axes[i].edits) told.merge(degrees_of(edit.leaf));
      told.merge(degrees_of(parts_.axes[i].interval.leaf));
    }
    if (axis != kNone) told.merge(said_by(axis, setting));
    return told;
  }
  // What one value of an axis says itself.
  Degrees said_by(int axis, const Setting* setting) const {
    const Axis& of = parts_.axes[std::size_t(axis)];
    if (setting == nullptr) return degrees_of(of.interval.leaf);
    Degrees said;
    for (std::uint32_t i = setting->first_edit; i < setting->last_edit; ++i) {
      said.merge(degrees_of(of.edits[i].leaf));
    }
    return said;
  }
  // What a degree of the main deployment may be there: 'dp 16', 'dp up to 32', 'dp' where it is computed; nothing where it is 1.
  std::string of_main(std::string_view degree, int axis) const {
    const Possibilities there = possibilities_of(axis);
    const PossibleValues& possible = there.of(leaf_of("", degree));
    if (possible.anything) return std::string(degree);
    const auto [least, most] = std::ranges::minmax(possible.values);
    if (most <= 1) return "";
    return fmt::format("{} {}{}", degree, least < most ? "up to " : "", most);
  }

 private:
  Degrees degrees_of(int leaf) const {
    const auto found = std::ranges::find(leaves_, leaf);
    if (leaf < 0 || found == leaves_.end()) return {};
    return {kDegrees[std::size_t(found - leaves_.begin())]};
  }
  bool meets(int axis, std::size_t other) const {
    return axis == kNone || may_meet(ways_[std::size_t(axis)], ways_[other]);
  }
  // In points that have the axis: nothing of other sub-sweeps, and what its own sets for all of its points.
  Possibilities possibilities_of(int axis) const {
    Possibilities there(parts_);
    if (axis == kNone) return there;
    for (const auto& [concat, branch] : ways_[std::size_t(axis)]) {
      there = there.without(*concat).with(*branch);
    }
    return there;
  }
  void find_ways(const SpaceNode& node, const Way& way) {
    if (node.axis != kNone) ways_[std::size_t(node.axis)] = way;
    for (const SpaceNode& child : node.children) find_ways(child, way);
    for (const Branch& branch : node.branches) {
      Way below = way;
      below.emplace_back(&node, &branch);
      for (const int axis : branch.fixed) ways_[std::size_t(axis)] = below;
      find_ways(branch.node, below);
    }
  }

  const SpaceParts& parts_;
  std::vector<Way> ways_;    // one an axis
  std::vector<int> leaves_;  // one a degree
  Degrees in_base_;          // and derived
  const engine::Location* where_ = nullptr;
};

// The sentence, where points with a value of an axis (without one: what the base says) follow the main deployment in part.
std::string note_on(std::string_view role, const SaidOfLayout& said, int axis,
                    const Setting* setting, const engine::Location& where) {
  const Degrees told = said.told(axis, setting);
  std::vector<std::string> followed;
  for (const std::string_view degree : kDegrees) {
    if (told.contains(degree)) continue;
    const std::string of_main = said.of_main(degree, axis);
    if (!of_main.empty()) followed.push_back(of_main);
  }
  if (followed.empty()) return "";
  return fmt::format(
      "{}:{}:{}: '{}.parallel' states {} and no more, so it has {} of the main deployment; state "
      "what is to differ, also where that is 1",
      where.file, where.line, where.column, role, fmt::join(told, ", "), fmt::join(followed, ", "));
}

std::string first_note_on(std::string_view role, const SpaceParts& parts,
                          const std::vector<StatedField>& base,
                          const std::vector<engine::Location>& axes) {
  const SaidOfLayout said(role, parts, base);
  std::string note;
  if (said.where() != nullptr) note = note_on(role, said, kNone, nullptr, *said.where());
  for (std::size_t i = 0; i < parts.axes.size() && note.empty(); ++i) {
    const auto look = [&](const Setting* setting) {
      if (!note.empty() || said.said_by(int(i), setting).empty()) return;
      note = note_on(role, said, int(i), setting, axes[i]);
    };
    look(nullptr);
    for (const Setting& setting : parts.axes[i].settings) look(&setting);
  }
  return note;
}

}  // namespace

std::vector<std::string> notes_on_followed_layouts(const SpaceParts& parts,
                                                   const std::vector<StatedField>& base,
                                                   const std::vector<engine::Location>& axes) {
  std::vector<std::string> notes;
  for (const std::string_view role : kWithReplicasOfTheirOwn) {
    std::string note = first_note_on(role, parts, base, axes);
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace sweep
