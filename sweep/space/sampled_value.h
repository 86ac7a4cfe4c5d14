// The value a sample in (0, 1) stands for.
#pragma once

#include "engine/leaves/leaves.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// Rounded down, but for a value that is whole up to the rounding of its arithmetic: 0.29 * 100 is 29.
double rounded_down(double value);

// The double with this many significant decimal digits that is nearest: computed values then do not
// depend on the last bit of a math library.
double rounded(double value, int digits);

// `kind` is a number, a quantity or an integer (whose interval includes both ends).
engine::LeafValue sampled_value(const Interval& interval, engine::LeafKind kind, double sample);

}  // namespace sweep
