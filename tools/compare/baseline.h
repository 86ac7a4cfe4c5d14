// A run becomes the one that later runs are compared with.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.h"

namespace tools {

// Puts a copy of the run in the place of the baseline, which may be absent: the old one or the new one
// is there at every moment, whole. A run that is unfinished or damaged, and a folder in that place that
// is no run, are mistakes, and nothing is changed.
std::vector<engine::Mistake> accept_baseline(const std::string& baseline, const std::string& run);

}  // namespace tools
