// What a sweep would run, without running it.
#pragma once

#include "sweep/language/sweep_spec.h"

namespace tools {

// Prints counts, rejections with reasons, the first points, and an estimate of time and size.
int print_check(const sweep::SweepSpec& spec);

}  // namespace tools
