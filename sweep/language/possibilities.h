// What the leaves of a sweep's points may be. This is a superset, since combinations of values are not looked at.
#pragma once

#include <algorithm>
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
  // In the points of a sub-sweep, which has nothing of the axes that are set `elsewhere` alone.
  Possibilities inside(const Branch& branch, const std::vector<bool>& elsewhere) const;

  PossibleValues of(int leaf) const;
  // Whether an axis is part of every point.
  bool always(std::size_t axis) const { return always_[axis]; }
  engine::CanBe can_be() const;
  // Leaves that conditions of axes read, or derivations of leaves that count or are read themselves: what they are may change points
  // where no task reads them.
  std::set<int> read_by_formulas() const;

 private:
  void find_constant(const SpaceNode& node);
  bool unconditional(int axis) const;

  const SpaceParts& parts_;
  std::vector<bool> always_, never_;
};

}  // namespace sweep
