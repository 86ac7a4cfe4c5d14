// What came of the points of a sweep, for the end of `check` and `run`: how many work, how many do not, and
// why not, by the class of the reason.
#pragma once

#include <cstdint>
#include <string>

#include "sweep/language/sweep_spec.h"
#include "sweep/space/row_sink.h"

namespace tools {

// Rows by status and, under those that do not work, by class of reason; then what has no row.
std::string summary_text(const sweep::Tally& tally, const sweep::Space& space);

// Whether not one point works, be it that there is none.
bool nothing_works(const sweep::Tally& tally);

// One line that says so, with what the first point that does not work says of itself.
std::string nothing_works_text(const sweep::Tally& tally, const sweep::SweepSpec& spec);

// Devices whose prices will be missing because no rent is stated, as a note; empty: there are none.
std::string rent_note(const sweep::Space& space);

}  // namespace tools
