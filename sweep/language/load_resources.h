// What scenarios only name and a run must have at hand: recorded traces and calibrations.
#pragma once

#include <vector>

#include "engine/leaves/leaves.h"
#include "sweep/language/reading.h"
#include "sweep/space/space_parts.h"

namespace sweep {

// The edits that give a leaf its value. A leaf that names a trace also gets the file's checksum, so
// that a point's identity follows the content; the trace itself goes into the reading's resources.
// A rate curve is read, so that what is wrong with it is said here and not by every point.
std::vector<Edit> leaf_edits(int leaf, engine::LeafValue value, const engine::Location& where,
                             Reading& reading);

// Whether a leaf says what a file holds that another leaf names.
bool is_checksum(int leaf);

// Notes a mistake for each trace or file of acceptances that does not hold what the sweep says it does: it has
// changed since the sweep was resolved, and points would have the identity of others.
void check_contents(const SpaceParts& parts, const engine::Location& where, Reading& reading);

// The same space, whose files are called by what they hold: sweeps that differ in nothing but where these lie have it in common. Labels
// stay, since rows have them.
SpaceParts by_content(SpaceParts parts);

// Loads every calibration of the library (calibration/*.calibration; the first folder that has a name
// wins) and writes their common checksum into the base. A sweep resolved with others is refused.
void load_calibrations(engine::Scenario& base, const engine::Location& where, Reading& reading);

}  // namespace sweep
