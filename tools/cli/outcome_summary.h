// What came of the points of a sweep, for the end of `check` and `run`: how many work, how many do not, and
// why not, by the class of the reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/language/sweep_spec.h"
#include "sweep/space/row_sink.h"

namespace tools {

// Rows by status and, under those that do not work, by class of reason; then what has no row.
std::string summary_text(const sweep::Tally& tally, const sweep::Space& space);

// Whether not one point works, be it that there is none.
bool nothing_works(const sweep::Tally& tally);

// One line that says so, with what the first point that does not work says of itself.
std::string nothing_works_text(const sweep::Tally& tally, const sweep::SweepSpec& spec);

// What devices do not state and figures need: a rent, without which there are no prices, and how many multiprocessors there are,
// without which there is one.
std::vector<std::string> device_notes(const sweep::Space& space);

}  // namespace tools
