// The time of one kernel call, in parts, so that a report can say why it is slow.
#pragma once

#include "engine/base/savings.h"
#include "engine/base/tier.h"
#include "engine/base/units.h"
#include "engine/calibration/calibration.h"
#include "engine/hardware/device.h"
#include "engine/model/op.h"

namespace engine {

// A kernel takes between one and five times its roofline: the spread of three GPUs' tables
// (engine/README.md). No better founded interval exists without a fit.
constexpr double kRooflineHigh = 5;

struct KernelTime {
  Seconds compute;  // arithmetic, at the rate its tiles and waves allow
  Seconds memory;   // off-chip traffic
  Seconds l2;       // traffic that stays in the last-level cache
  Seconds launch;   // floor of any kernel, and what does not overlap with the rest
  Seconds time;     // all of it; how the parts overlap depends on the form
  Seconds least;    // arithmetic at the peak, or cold bytes at the memory's: physics allows no less
  Flops flops;      // useful work
  Bytes bytes;      // all traffic, both levels
  Tier tier = Tier::roofline;
  bool extrapolated = false;
  double low = 1;  // nine calls in ten take between `low` and `high` times `time`
  double high = kRooflineHigh;
  Savings saved;  // of `time`, if one part were free

  Seconds total() const { return time; }
  Bound bound() const { return saved.largest(); }
};

// Time of one call on one device. Without a calibration, or where it has no parameters for the
// family, the roofline. Collectives are not kernels of one device: see engine/comm.
KernelTime kernel_time(Family family, const Op& op, const Device& device,
                       const Calibration* calibration);

// The shape of a call as the calibration knows it, in the order of its family's coordinates.
Coordinates coordinates_of(Family family, const Op& op);

}  // namespace engine
