// What scenarios only name and a run must have at hand: recorded traces and calibrations.
#pragma once

#include <vector>

#include "engine/leaves.h"
#include "sweep/language/reading.h"

namespace sweep {

// The edits that give a leaf its value. A leaf that names a trace also gets the file's checksum, so
// that a point's identity follows the content; the trace itself goes into the reading's resources.
// A rate curve is read, so that what is wrong with it is said here and not by every point.
std::vector<Edit> leaf_edits(int leaf, engine::LeafValue value, const engine::Location& where,
                             Reading& reading);

// Loads every calibration of the library (calibration/*.calibration; the first folder that has a name
// wins) and writes their common checksum into the base. A sweep resolved with others is refused.
void load_calibrations(engine::Scenario& base, const engine::Location& where, Reading& reading);

}  // namespace sweep
