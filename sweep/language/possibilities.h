// What the leaves of a sweep's points may be. This is a superset, since combinations of values are not looked at.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "engine/leaves/leaf_use.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// Every value a leaf may have in some point.
struct PossibleValues {
  bool anything = false;  // it is derived or drawn from an interval
  std::vector<double> values;

  template <class Holds>
  bool any(Holds holds) const {
    return anything || std::ranges::any_of(values, holds);
  }
};

class Possibilities {
 public:
  explicit Possibilities(const SpaceParts& parts);
  // In the points of one sub-sweep: `without` the concat and then `with` the one. Of thousands of sub-sweeps each looks at
  // what is around them and at its own axes, never at those of all others.
  Possibilities without(const SpaceNode& concat) const;
  Possibilities with(const Branch& branch) const;

  const PossibleValues& of(int leaf) const;
  // Whether an axis is part of every point.
  bool always(std::size_t axis) const { return always_.contains(int(axis)); }
  engine::CanBe can_be() const;
  // Leaves that conditions of axes read, or derivations of leaves that count or are read themselves: what they are may change points
  // where no task reads them.
  std::set<int> read_by_formulas() const;

 private:
  void find_constant(const SpaceNode& node);
  bool unconditional(int axis) const;

  PossibleValues found(int leaf) const;

  const SpaceParts* parts_;
  std::vector<int> axes_;  // that some point has
  std::set<int> always_;
  mutable std::map<int, PossibleValues>
      known_;  // by leaf: conditions ask for the same ones again and again
};

}  // namespace sweep
