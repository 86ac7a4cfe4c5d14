// How far a prediction may be off: the intervals of its kernels put together.
#pragma once

#include <optional>
#include <vector>

#include "engine/base/units.h"
#include "engine/step/kernel_row.h"

namespace engine {

// Nine times in ten the truth lies between these.
struct Interval {
  Seconds low;
  Seconds high;
};

// The interval of the sum of the rows of one phase, or of all. Errors of kernels of one family go together, so their deviations add up;
// errors of different families are independent, so theirs add up in squares.
Interval interval_of(const std::vector<KernelRow>& rows, std::optional<Phase> phase = std::nullopt);

}  // namespace engine
