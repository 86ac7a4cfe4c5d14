// How long the longest of unequal decodes runs on when the others are done.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

// Zero where the keys of every sequence are split so finely that it does not show.
Seconds overhang_time(const AttentionDecode& op, const Device& device);
Seconds overhang_time(const AttentionPrefill& op, const Device& device);

// Adds it to the time of the call: arithmetic that nothing overlaps.
template <class Attention>
void add_overhang(const Attention& op, const Device& device, KernelTime& time) {
  if (op.overhang <= 0) return;
  const Seconds overhang = overhang_time(op, device);
  time.compute += overhang;
  time.time += overhang;
  time.saved[Bound::compute] += overhang;
}

}  // namespace engine
