// The time of one kernel call, in parts, so that a report can say why it is slow.
#pragma once

#include <algorithm>

#include "engine/base/units.h"
#include "engine/kernels/tier.h"

namespace engine {

struct KernelTime {
  Seconds compute;  // arithmetic, at the rate its tiles and waves allow
  Seconds memory;   // off-chip traffic
  Seconds l2;       // traffic that stays in the last-level cache
  Seconds launch;   // floor of any kernel
  Flops flops;      // useful work
  Bytes bytes;      // all traffic, both levels
  Tier tier = Tier::roofline;
  bool extrapolated = false;

  // Arithmetic overlaps with traffic; the two levels of traffic share one pipeline; the floor does
  // not overlap with anything.
  Seconds total() const { return launch + std::max(compute, memory + l2); }

  Bound bound() const {
    const Seconds traffic = memory + l2;
    if (launch >= std::max(compute, traffic)) return Bound::launch;
    if (compute >= traffic) return Bound::compute;
    return memory >= l2 ? Bound::memory : Bound::l2;
  }
};

}  // namespace engine
