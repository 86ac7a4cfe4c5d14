// How likely proposed tokens hold, from a file: comma-separated values with a line of names. Columns `position` (from 1)
// and `acceptance` (between 0 and 1); `workload` where there are several. Beyond the last position of a workload its
// acceptance counts for all that follow.
#pragma once

#include <string>
#include <string_view>

#include "engine/base/result.h"
#include "engine/speculation/acceptance.h"

namespace sweep {

engine::Result<engine::AcceptanceTable> read_acceptance_file(const std::string& path);

// The same from a text; `name` is what mistakes call it.
engine::Result<engine::AcceptanceTable> parse_acceptance(std::string_view text,
                                                         const std::string& name);

}  // namespace sweep
