// Where named devices, models and loads are looked for.
#pragma once

#include "sweep/language/library.h"

namespace tools {

// The spec library that came with this binary, with the user's own folders before it.
sweep::Library standard_library();

}  // namespace tools
