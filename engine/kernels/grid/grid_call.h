// Matrix products on a grid of multipliers (device.array): cycles by how often it is filled, and traffic by level.
#pragma once

#include <optional>

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

struct GridCall {
  double cycles = 0;  // of the grids, which work side by side
  double multiplies = 0;
  Flops useful;  // without those that a mask makes vain
  Seconds
      at_peak;  // of what is useful, in the format's peak, which a device may state lower than its grids allow
  Bytes buffer;  // between grids and buffer
  Bytes memory;  // between buffer and memory
  Bytes cold;    // of that: in any case

  // Adds another call that follows this one `times` times.
  void add(const GridCall& other, double times = 1);
};

// What one call takes on a grid; nothing where grids do not do it (passes, copies, adapters).
std::optional<GridCall> grid_call(const Op& op, const Device& device);

// Grids, buffer and memory work at the same time.
KernelTime grid_time(const GridCall& call, const Device& device);

}  // namespace engine
