// Which candidates are best: in order of one figure, or on the Pareto front of several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/query/question.h"

namespace tools {

// The best `count` rows of each group by the first objective, best first, groups in the order of their
// best. Equal rows stay in the order of the table.
std::vector<std::uint32_t> best_rows(const Candidates& candidates, const Question& question,
                                     std::size_t count);

// The rows that no other row of their group beats: none is at least as good in every objective and
// better in one. Ordered by the first objective, best first. Equal rows are all on the front.
std::vector<std::uint32_t> front_rows(const Candidates& candidates, const Question& question);

}  // namespace tools
