// Boosted trees on top of a fitted set: the rules by which one engine chooses its kernels, learned on one
// device for its relatives.
#pragma once

#include <string>
#include <vector>

#include "engine/calibration/calibration.h"
#include "tools/calibrate/fit/error_summary.h"
#include "tools/calibrate/fit/fit_section.h"

namespace tools {

// Puts trees over what the own set leaves of `samples`, all of one section and device, into that set. They
// know the shape and the multiprocessors of that device only, so that a better device is never
// slower. Returns every sample as predicted by trees that saw no call of its weight shape or head
// layout; families without features get no trees.
std::vector<Scored> add_trees(engine::Calibration& calibration, const std::vector<Sample>& samples);

}  // namespace tools
