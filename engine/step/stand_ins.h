// Which few of many decode steps to time, and how many each of them stands for.
//
// What a step takes follows from the tokens made before it: smoothly, but for places where another limit sets in, and for stairs where
// keys are read tile by tile. So a run is halved until a parabola through three steps of a part tells others of it, too.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/step/pace.h"

namespace engine {

// A step that is timed, and stands for others. A sum over stand-ins, each as often as it stands for steps, is that over all steps for
// whatever is a parabola between them.
struct StandIn {
  std::int64_t step = 0;
  double seconds = 0;
  double stands_for = 0;
};

// How far off a part's parabola may be where it is checked, as a share of the step there.
inline constexpr double kStandInTolerance = 1e-5;

// Asks `seconds_of(step)` for each step of the list that it returns, once and in this order.
std::vector<StandIn> stand_ins(const Pace& pace, std::int64_t steps,
                               const std::function<double(std::int64_t)>& seconds_of);

}  // namespace engine
