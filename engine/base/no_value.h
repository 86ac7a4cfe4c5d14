// What a figure holds that nothing gave a value.
#pragma once

#include <limits>

namespace engine {

// A figure that a task does not produce stays NaN and becomes null in the tables.
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

}  // namespace engine
