// A comparison as people read it, and as a table for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/text_table.h"
#include "tools/compare/comparison.h"

namespace tools {

enum class PageFormat : std::uint8_t { text, markdown, html };

// What the two runs are called, and what differs: sections with a table each, those without a
// difference left out.
std::string comparison_page(const RunPair& pair, const Comparison& comparison, PageFormat format);

// One row a point and column that differ: `change` (new, missing, status, figure), the point in both
// runs, the column, what it was and is. Of each figure the points that were kept as its worst.
results::TextTable differences(const RunPair& pair, const Comparison& comparison);

}  // namespace tools
