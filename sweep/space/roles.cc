#include "sweep/space/roles.h"

#include <algorithm>
#include <string>

#include "engine/leaves/leaves.h"
#include "engine/scenario.h"

namespace sweep {
namespace {

// Leaves of a role that may differ from point to point: all where the role itself may be missing, else those
// whose counterparts in the main deployment do.
void add_varied(const SpaceParts& parts, int presence, std::set<int>& varied) {
  const auto in_role = [presence](const Axis& axis) { return axis.role == presence; };
  const bool always = engine::leaf_integer(parts.base, engine::leaf_at(presence)) != 0;
  const bool comes_and_goes =
      varied.contains(presence) || (!always && std::ranges::any_of(parts.axes, in_role));
  if (comes_and_goes) varied.insert(presence);
  const std::vector<engine::Leaf>& leaves = engine::leaf_table().leaves;
  for (int i = 0; i < int(leaves.size()); ++i) {
    if (engine::leaf_at(i).presence != presence) continue;
    const bool follows = varied.contains(engine::leaf_at(i).of_main) && !is_stated(parts, i);
    if (comes_and_goes || follows) varied.insert(i);
  }
}

}  // namespace

bool is_stated(const SpaceParts& parts, int leaf) {
  return std::ranges::find(parts.stated_of_roles, leaf, &Edit::leaf) != parts.stated_of_roles.end();
}

int role_of(std::string_view path) {
  const engine::LeafTable& table = engine::leaf_table();
  const std::string_view first = path.substr(0, path.find('.'));
  int found = kNone;
  static const engine::Scenario any;
  engine::each_role(any, [&](std::string_view role, const engine::Role&) {
    if (role == first) found = table.find_leaf(std::string(role) + ".present");
  });
  return found;
}

void complete_roles(SpaceParts& parts, std::set<int>& varied) {
  std::set<int> named;
  for (Axis& axis : parts.axes) {
    axis.role = role_of(axis.path);
    axis.states_presence =
        std::ranges::find(axis.edits, axis.role, &Edit::leaf) != axis.edits.end();
    if (axis.role != kNone) named.insert(axis.role);
  }
  for (const engine::Leaf& leaf : engine::leaf_table().leaves) {
    if (leaf.presence >= 0 && engine::is_present(parts.base, leaf)) named.insert(leaf.presence);
  }
  parts.roles.assign(named.begin(), named.end());
  std::ranges::sort(parts.stated_of_roles, {}, &Edit::leaf);
  engine::fill_roles(parts.base);
  for (const Edit& edit : parts.stated_of_roles) apply(edit, parts.base);
  for (const int presence : parts.roles) add_varied(parts, presence, varied);
}

}  // namespace sweep
