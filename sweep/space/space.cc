#include "sweep/space/space.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "sweep/space/powers.h"
#include "sweep/space/roles.h"
#include "sweep/space/space_parts.h"

namespace sweep {
// Children first: every node's size follows from theirs.
bool compute_size(SpaceNode& node, const SpaceParts& parts) {
  const auto multiply = [](std::uint64_t& size, std::uint64_t factor) {
    return !__builtin_mul_overflow(size, factor, &size);
  };
  switch (node.kind) {
    case SpaceNode::Kind::values:
      // A reader may ask about an axis that could not be read.
      node.size = node.axis == kNone    ? 0
                  : !node.order.empty() ? node.order.size()
                                        : parts.axes[std::size_t(node.axis)].settings.size();
      return true;
    case SpaceNode::Kind::sample:
      node.size = node.sample.count;
      return true;
    case SpaceNode::Kind::zip:
    case SpaceNode::Kind::product:
      node.size = 1;
      for (SpaceNode& child : node.children) {
        if (!compute_size(child, parts)) return false;
        if (node.kind == SpaceNode::Kind::zip) {
          node.size = child.size;
        } else if (!multiply(node.size, child.size)) {
          return false;
        }
      }
      return true;
    case SpaceNode::Kind::concat:
      node.size = 0;
      for (Branch& branch : node.branches) {
        if (!compute_size(branch.node, parts)) return false;
        branch.begin = node.size;
        if (__builtin_add_overflow(node.size, branch.node.size, &node.size)) return false;
      }
      return true;
  }
  return true;
}

namespace {

// Which axes are over parts of what others are over: "device.peak" of "device".
void find_narrower(std::vector<Axis>& axes) {
  std::set<std::string_view> paths, holding;
  for (const Axis& axis : axes) paths.insert(axis.path);
  for (Axis& axis : axes) {
    axis.inside_another = false;
    const std::string_view path = axis.path;
    for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1)) {
      if (!paths.contains(path.substr(0, dot))) continue;
      axis.inside_another = true;
      holding.insert(path.substr(0, dot));
    }
  }
  for (Axis& axis : axes) axis.holds_narrower = axis.yields || holding.contains(axis.path);
}

}  // namespace

bool complete(SpaceParts& parts) {
  parts.reasons.clear();
  for (const Requirement& requirement : parts.requirements) {
    parts.reasons.push_back(requirement.reason);
  }
  std::set<int> varied;
  for (Axis& axis : parts.axes) {
    for (const Edit& edit : axis.edits) varied.insert(edit.leaf);
    if (axis.interval.leaf != kNone) varied.insert(axis.interval.leaf);
  }
  find_narrower(parts.axes);
  for (const Derivation& derivation : parts.derivations) varied.insert(derivation.leaf);
  complete_roles(parts, varied);
  add_powers_that_vary(varied);
  follow_rated_powers(parts.base);
  parts.varied_leaves.assign(varied.begin(), varied.end());
  compile_writes(parts);
  return compute_size(parts.root, parts);
}

Space::Space(std::shared_ptr<const SpaceParts> parts) : parts_(std::move(parts)) {}

std::uint64_t Space::size() const { return parts_->root.size; }
const engine::Scenario& Space::base() const { return parts_->base; }
const std::vector<LabelColumn>& Space::label_columns() const { return parts_->label_columns; }
const std::vector<std::string>& Space::requirements() const { return parts_->reasons; }
const std::vector<int>& Space::varied_leaves() const { return parts_->varied_leaves; }

std::vector<int> Space::sampled_leaves() const {
  std::vector<int> leaves;
  for (const Axis& axis : parts_->axes) {
    if (axis.interval.leaf != kNone) leaves.push_back(axis.interval.leaf);
  }
  return leaves;
}

}  // namespace sweep
