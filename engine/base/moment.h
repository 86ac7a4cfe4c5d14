// Moments of a simulation, in seconds.
#pragma once

#include <limits>

namespace engine {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Boundaries closer than this are one moment, whichever way they were summed up.
constexpr double kSameMoment = 1e-9;

}  // namespace engine
