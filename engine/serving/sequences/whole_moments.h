// Times that requests are put in order by, without what rounding makes of equal ones.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/base/moment.h"

namespace engine {

// The nearest of evenly spaced moments. Of two times that are equal but for rounding, one in a million pairs has different ones.
inline double whole_moments(double time) { return std::round(time / kSameMoment) * kSameMoment; }
// How many they are, of a time that is not negative.
inline std::int64_t moments_until(double time) { return std::int64_t(time / kSameMoment + 0.5); }

}  // namespace engine
