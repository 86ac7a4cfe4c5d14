// `- table: designs.csv` among axes: every column is a path, every row a design. The document then says the same as a zip of
// lists, so that whatever follows from an axis follows here, too.
#pragma once

#include "sweep/language/node.h"
#include "sweep/language/reading.h"

namespace sweep {

// Puts a zip into the place of each table in `axes` of a sweep.
void expand_tables(Node& document, Reading& reading);

}  // namespace sweep
