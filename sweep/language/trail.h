// Which sub-sweeps of which concats something is said in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/base/result.h"

namespace sweep {

struct InBranch {
  engine::Location concat;
  std::size_t branch = 0;

  bool operator==(const InBranch&) const = default;
};
using Trail = std::vector<InBranch>;  // from the outside in

// Whether all points of `inner` are points of `outer`.
inline bool covers(const Trail& outer, const Trail& inner) {
  return outer.size() <= inner.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

// Whether a point can be in both: not in two sub-sweeps of one concat. Two concats side by side are crossed.
inline bool may_meet(const Trail& one, const Trail& other) {
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if (one[i].concat != other[i].concat) return true;
    if (one[i].branch != other[i].branch) return false;
  }
  return true;
}

}  // namespace sweep
