// How long the longest of unequal decodes runs on when the others are done.
#pragma once

#include "engine/hardware/device.h"
#include "engine/kernels/kernel_time.h"
#include "engine/model/op.h"

namespace engine {

// Zero where nothing is known of the overhang, or the keys of every sequence are split so finely that
// it does not show.
Seconds overhang_time(const AttentionDecode& op, const Device& device);
Seconds overhang_time(const AttentionPrefill& op, const Device& device);

// `time` with the overhang's after it: arithmetic that nothing overlaps.
KernelTime with_overhang(KernelTime time, Seconds overhang);

}  // namespace engine
