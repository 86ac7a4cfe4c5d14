// By how much two points differ, and where the time between them goes.
#pragma once

#include <cstdint>
#include <string>

#include "engine/outcome.h"

namespace tools {

// A table of figures that differ and one of parts of the time, for eyes; the indices name the points.
std::string difference_text(const engine::Outcome& one, const engine::Outcome& other,
                            std::uint64_t one_index, std::uint64_t other_index);

}  // namespace tools
