// Which rows an expression such as "device == 'h100-sxm' and ttft_p99_s < 500 ms" holds for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "tools/query/points.h"

namespace tools {

struct Matches {
  std::vector<std::uint8_t> holds;  // one flag a row
  std::vector<std::string> notes;   // texts that no row has: a slip of the pen, as a rule
};

// The language is that of `require` in a sweep (sweep/README.md) without functions and
// without ?:, over the columns of the table. A comparison with a null does not hold. Mistakes name the
// option and the character.
engine::Result<Matches> rows_where(const RunRows& rows, const std::string& text);

}  // namespace tools
